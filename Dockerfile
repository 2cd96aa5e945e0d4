# One image for the api, the worker and the sandbox bank: they differ in their command only.
# Debian, not Alpine: Temporal's native core needs glibc.
FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No package that the build or the image needs has to run a script.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json tsconfig.kit.json ./
COPY tools/kit-types.mjs tools/
COPY src src
COPY workflows workflows
COPY activities activities
COPY worker worker
COPY connectors connectors
COPY stack stack
COPY docs docs
# Pages of the documentation.
COPY clients/typescript/README.md clients/typescript/
COPY clients/python/README.md clients/python/
COPY README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE ./
# It writes into the docs what modules say that the image lacks.
RUN rm -r docs/generate && npm run build && npm prune --omit=dev --ignore-scripts \
  # An optional peer of viem, which needs its types alone.
  && rm -rf node_modules/typescript node_modules/@typescript

FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20
# Stack traces name lines of the sources, in every process of the image.
ENV NODE_ENV=production NODE_OPTIONS=--enable-source-maps
WORKDIR /app
# Temporal's native core reads the system's certificates when it connects by TLS.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* && mkdir -p /data/keys /keys/api /keys/worker /keys/bank /state \
  && for user in operator api worker sandbox_bank sepa; do mkdir -p /login/$user; done \
  && chown -R node:node /data /keys /state /login
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
CMD ["node", "dist/src/main.js"]
