# The command line of fairopt, on files of the folder that is mounted at /data:
#
#   docker build -t fairopt .
#   docker run --rm -v "$PWD:/data" -u "$(id -u):$(id -g)" fairopt solve cluster.yaml
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY fairopt fairopt
COPY models models
COPY solvers solvers
RUN python -m venv /fairopt && /fairopt/bin/pip install --quiet --no-cache-dir --constraint constraints.txt '.[report]'

FROM python:3.12-slim
COPY --from=build /fairopt /fairopt
# Kernels that numba compiles, and matplotlib's list of fonts, are kept where any user may write.
ENV PATH=/fairopt/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba MPLCONFIGDIR=/tmp/matplotlib
RUN useradd --create-home fairopt
USER fairopt
WORKDIR /data
ENTRYPOINT ["fairopt"]
CMD ["--help"]
