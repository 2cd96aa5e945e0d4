import {
  outpostConfig,
  postgresArguments,
  rabbitmqEnvironment,
  redisArguments,
} from '../../../bench/outpost/settings';

const PORTS = {
  ...{ api: 20_001, redis: 20_002, postgres: 20_003 },
  ...{ rabbitmq: 20_004, distribution: 20_005, epmd: 20_006 },
};
const SECRETS = { apiKey: 'key', jwt: 'jwt', encryption: 'e'.repeat(32) };

test('Outpost reaches its own servers, reports to nobody and has as many slots as a worker', () => {
  expect(JSON.parse(outpostConfig(PORTS, SECRETS))).toMatchObject({
    api_port: 20_001,
    api_key: 'key',
    api_jwt_secret: 'jwt',
    aes_encryption_secret: 'e'.repeat(32),
    redis: { host: '127.0.0.1', port: 20_002 },
    postgres: 'postgres://outpost@127.0.0.1:20003/postgres?sslmode=disable',
    mqs: { rabbitmq: { server_url: 'amqp://guest:guest@127.0.0.1:20004' } },
    delivery_max_concurrency: 200,
    delivery_timeout_seconds: 10,
    disable_telemetry: true,
  });
});

test('Redis writes each command to the disk before it answers, on this machine alone', () => {
  const args = redisArguments(20_002, '/tmp/redis').join(' ');
  expect(args).toContain('--bind 127.0.0.1 --port 20002 --dir /tmp/redis');
  expect(args).toContain('--appendonly yes --appendfsync always');
});

test('PostgreSQL listens on this machine alone, without a socket file', () => {
  const args = postgresArguments(20_003, '/tmp/postgres').join(' ');
  expect(args).toBe(
    '-D /tmp/postgres -p 20003 -c listen_addresses=127.0.0.1 -c unix_socket_directories=',
  );
});

test('every file and port of RabbitMQ is its own', () => {
  const env = rabbitmqEnvironment(PORTS, '/tmp/rabbitmq', '/usr/bin');
  const files = Object.entries(env).filter(([, value]) => value?.includes('/'));
  expect(
    files.filter(([name, value]) => !value?.startsWith('/tmp/rabbitmq') && name !== 'PATH'),
  ).toEqual([]);
  expect(env).toMatchObject({
    PATH: '/usr/bin',
    RABBITMQ_NODENAME: 'outpost-20004@localhost',
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: '20004',
    RABBITMQ_DIST_PORT: '20005',
    ERL_EPMD_PORT: '20006',
    ERL_EPMD_ADDRESS: '127.0.0.1',
  });
});
