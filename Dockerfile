# One image for everything: `portcullis run` (worker), `portcullis serve` (API and console), and the table commands.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/portcullis
COPY . .
RUN /opt/portcullis/bin/pip install --quiet -c constraints.txt ".[all]"

FROM python:${PYTHON}-slim-bookworm
# A number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 portcullis \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/portcullis portcullis \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/portcullis /var/cache/portcullis
COPY --from=build /opt/portcullis /opt/portcullis
# The root file system may be read-only: data, compiled kernels and /tmp are all that is written.
ENV PATH=/opt/portcullis/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/var/cache/portcullis \
    PORTCULLIS_DATA=/var/lib/portcullis \
    HEALTH_URL=http://127.0.0.1:8080/healthz
WORKDIR /var/lib/portcullis
VOLUME ["/var/lib/portcullis", "/var/cache/portcullis"]
USER 10001:10001
# 8080: API and console; 9400: status and metrics of a worker.
EXPOSE 8080 9400
# A first start compiles the kernels before the worker joins its group, which may take minutes on a small machine.
HEALTHCHECK --interval=5s --timeout=5s --start-period=300s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(os.environ['HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["portcullis"]
CMD ["--help"]
