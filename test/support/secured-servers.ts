import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer, type TLSSocket } from 'node:tls';
import { startChild, waitUntilUp } from '../../stack/child-process';
import { freePort, LOOPBACK } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { startWatchdog } from '../stack/watchdog';
import type { Authority } from './certificates';
import { withClient } from './database';
import { provisionQuietly } from './programs';

/**
 * Proxy of a Temporal server for callers with a certificate of the authority, by HTTP/2 over TLS;
 * the development server has no TLS of its own.
 */
export async function startTlsProxy(authority: Authority, address: string) {
  const { cert, key } = authority.sign('temporal');
  const [host, port] = address.split(':');
  const sockets = new Set<TLSSocket>();
  const server = createServer(
    {
      ...{ cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) },
      ...{ requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] },
    },
    (inside) => {
      const outside = connect(Number(port), host);
      sockets.add(inside);
      pipeline(inside, outside, inside, () => sockets.delete(inside));
    },
  );
  // The handshake refuses a caller without a certificate.
  server.on('tlsClientError', () => {});
  const listenPort = await freePort();
  server.listen(listenPort, LOOPBACK);
  await once(server, 'listening');
  return {
    address: `${LOOPBACK}:${listenPort}`,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const UP_MS_MAX = 120_000;
const SET = 'secured';
const PASSWORD = 'no-secret';
const DATABASES = ['payments', 'payments_sandbox_bank'];

/** Starts a mongod that takes TLS only, from clients with a certificate, and users only. */
export async function startSecuredMongo(authority: Authority, folder: string) {
  const command = await provisionQuietly(mongod);
  const port = await freePort();
  const dbPath = join(folder, 'mongodb');
  const keyFile = join(folder, 'set.key');
  const logFile = join(folder, 'mongodb.log');
  mkdirSync(dbPath);
  writeFileSync(keyFile, randomBytes(48).toString('base64'), { mode: 0o600 });
  const child = await startChild({
    name: 'MongoDB',
    command,
    args: [
      ...['--dbpath', dbPath, '--port', String(port), '--bind_ip', LOOPBACK, '--nounixsocket'],
      ...['--replSet', SET, '--auth', '--keyFile', keyFile, '--wiredTigerCacheSizeGB', '0.25'],
      ...['--tlsMode', 'requireTLS', '--tlsCAFile', authority.ca],
      ...['--tlsCertificateKeyFile', authority.sign('mongodb').both, '--oplogSize', '64'],
    ],
    logFile,
    graceMs: 2_000,
  });
  const watchdog = startWatchdog([child.pid], folder);
  const files = new URLSearchParams({
    tls: 'true',
    tlsCAFile: authority.ca,
    tlsCertificateKeyFile: authority.sign('service').both,
  });
  const uri = (user: string, more: string) =>
    `mongodb://${user === '' ? '' : `${user}:${PASSWORD}@`}${LOOPBACK}:${port}/?${files}&${more}`;
  const user = (name: string, ...roles: { role: string; db: string }[]) => ({
    createUser: name,
    pwd: PASSWORD,
    roles,
  });
  await waitUntilUp(child, logFile, UP_MS_MAX, () =>
    withClient(uri('', 'directConnection=true'), async (client) => {
      const members = [{ _id: 0, host: `${LOOPBACK}:${port}` }];
      await client.db('admin').command({ replSetInitiate: { _id: SET, members } });
    }),
  );
  await waitUntilUp(child, logFile, UP_MS_MAX, () =>
    // The first user may be made without one, from this machine.
    withClient(uri('', 'directConnection=true'), (client) =>
      client.db('admin').command(user('owner', { role: 'root', db: 'admin' })),
    ),
  );
  await withClient(uri('owner', `replicaSet=${SET}`), (client) => {
    const roles = DATABASES.map((db) => ({ role: 'readWrite', db }));
    return client.db('admin').command(user('service', ...roles));
  });
  return {
    uri: uri('service', `replicaSet=${SET}`),
    stop: async () => {
      watchdog.dismiss();
      await child.stop();
    },
  };
}
