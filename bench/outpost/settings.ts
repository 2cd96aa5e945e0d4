import { join } from 'node:path';
import { LOOPBACK } from '../../stack/ports';

/** Type of every event. */
export const TOPIC = 'payment.settled';

/** Slots of a worker of the product, and of Outpost's own load tests. */
const CONCURRENCY = 200;
/** Seconds after which an attempt has failed, as the product's. */
const TIMEOUT_SECONDS = 10;
/** Outpost's user in PostgreSQL, whose password is never needed. */
const DATABASE_USER = 'outpost';

export interface Ports {
  api: number;
  redis: number;
  postgres: number;
  rabbitmq: number;
  distribution: number;
  epmd: number;
}

export interface Secrets {
  apiKey: string;
  jwt: string;
  /** 32 characters. */
  encryption: string;
}

/** Builds Outpost's configuration, which is YAML: JSON is part of it. */
export function outpostConfig({ api, redis, postgres, rabbitmq }: Ports, secrets: Secrets): string {
  return JSON.stringify({
    api_port: api,
    api_key: secrets.apiKey,
    api_jwt_secret: secrets.jwt,
    aes_encryption_secret: secrets.encryption,
    topics: [TOPIC],
    redis: { host: LOOPBACK, port: redis },
    postgres: `postgres://${DATABASE_USER}@${LOOPBACK}:${postgres}/postgres?sslmode=disable`,
    mqs: { rabbitmq: { server_url: `amqp://guest:guest@${LOOPBACK}:${rabbitmq}` } },
    publish_max_concurrency: CONCURRENCY,
    delivery_max_concurrency: CONCURRENCY,
    log_max_concurrency: CONCURRENCY,
    delivery_timeout_seconds: TIMEOUT_SECONDS,
    // Writes a run's attempts soon after it, so that they count.
    log_batch_threshold_seconds: 1,
    log_level: 'warn',
    disable_telemetry: true,
    telemetry: { disabled: true },
  });
}

/** Lets no write be answered before it is on the disk: Redis has the endpoints and the retries. */
export function redisArguments(port: number, dir: string): string[] {
  return [
    ...['--bind', LOOPBACK, '--port', `${port}`, '--dir', dir, '--daemonize', 'no'],
    ...['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
  ];
}

export function initdbArguments(dir: string): string[] {
  return ['-D', dir, '-U', DATABASE_USER, '-A', 'trust', '--encoding', 'UTF8', '--locale', 'C'];
}

export function postgresArguments(port: number, dir: string): string[] {
  return [
    ...['-D', dir, '-p', `${port}`, '-c', `listen_addresses=${LOOPBACK}`],
    ...['-c', 'unix_socket_directories='],
  ];
}

/** Builds RabbitMQ's environment: nothing of an installed one is read or written. */
export function rabbitmqEnvironment(
  { rabbitmq, distribution, epmd }: Ports,
  dir: string,
  path: string | undefined,
): NodeJS.ProcessEnv {
  return {
    PATH: path,
    // The cookie of Erlang's nodes is there.
    HOME: dir,
    RABBITMQ_MNESIA_BASE: join(dir, 'mnesia'),
    RABBITMQ_LOG_BASE: join(dir, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONF_ENV_FILE: join(dir, 'none.conf'),
    RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(dir, 'advanced.config'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(dir, 'generated'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'enabled_plugins'),
    RABBITMQ_NODENAME: `outpost-${rabbitmq}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: LOOPBACK,
    RABBITMQ_NODE_PORT: `${rabbitmq}`,
    RABBITMQ_DIST_PORT: `${distribution}`,
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    ERL_EPMD_PORT: `${epmd}`,
    ERL_EPMD_ADDRESS: LOOPBACK,
    // The script then becomes the server, whose process can be measured and killed.
    RUNNING_UNDER_SYSTEMD: 'true',
  };
}

/** Lets the log have what went wrong, and nothing else. */
export const RABBITMQ_CONFIG = 'log.console.level = warning\n';

export function epmdArguments(port: number): string[] {
  return ['-address', LOOPBACK, '-port', `${port}`];
}
