# The servers and commands of CometMQ: docker build -t cometmq .
# How to run it: docs/howto/containers.md. The tests run the RUN lines below without Docker (tests/docs/test_image.py).
ARG PYTHON=3.12

# With a C compiler, for the compiled twins (docs/decisions/0043-compiled-twins.md).
FROM python:${PYTHON}-bookworm AS build
WORKDIR /build
COPY hatch_build.py pyproject.toml README.md LICENSE requirements-dev.lock source/
COPY src source/src
# The versions that the tests have run with.
RUN sed -n 's/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' source/requirements-dev.lock > versions.txt
RUN python -m venv tools && tools/bin/pip install --no-cache-dir --disable-pip-version-check -c versions.txt hatchling cython setuptools
RUN cd source && COMETMQ_IMPL=native ../tools/bin/python -m hatchling build -t wheel -d ../wheel
RUN python -m venv /opt/cometmq
RUN /opt/cometmq/bin/pip install --no-cache-dir --disable-pip-version-check -c versions.txt "$(ls wheel/*.whl)[accounts,etcd]"
# Nothing is installed from now on, and Python itself need not write to the image.
RUN /opt/cometmq/bin/python -m pip uninstall --quiet --yes pip && /opt/cometmq/bin/python -m compileall -q /opt/cometmq

FROM python:${PYTHON}-slim-bookworm
RUN groupadd --gid 10001 cometmq \
 && useradd --uid 10001 --gid cometmq --home-dir /var/lib/cometmq --create-home --shell /usr/sbin/nologin cometmq \
 && mkdir /etc/cometmq
COPY --from=build /opt/cometmq /opt/cometmq
COPY deploy/start /usr/local/bin/cometmq-start
ENV PATH=/opt/cometmq/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/cometmq
VOLUME /var/lib/cometmq
# Name server, controller, broker with its VIP port and its port for replicas, metrics and health.
EXPOSE 9876 9878 10911 10909 10912 5557
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30m --start-interval=2s CMD ["cometmq-start", "health"]
ENTRYPOINT ["cometmq-start"]
CMD ["broker"]
