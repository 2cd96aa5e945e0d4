import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkMongoTls, checkTemporalTls } from '../../../src/base/tls';
import { readConfig } from '../../../src/config';
import { temporalAccess } from '../../../src/temporal/access';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'));
  writeFileSync(join(folder, 'some.pem'), 'pem');
});
afterAll(() => rmSync(folder, { recursive: true }));

const NEEDED = { MONGODB_URI: 'mongodb://localhost', KEYS_FILE: 'keys.json', KEYS_DIR: 'keys' };
const LIVE = {
  ...NEEDED,
  LIVE_CONNECTORS: 'acme=visa',
  PUBLIC_URL: 'https://pay.example',
  TRUSTED_PROXIES: '0',
};

describe('the access to Temporal', () => {
  test('is on this machine without TLS by default, and has TLS with an API key', () => {
    const local = { address: '127.0.0.1:7233', namespace: 'default' };
    expect(temporalAccess({ TEMPORAL_API_KEY: '', TEMPORAL_TLS: '' })).toEqual(local);
    expect(temporalAccess({ TEMPORAL_API_KEY: 'key' })).toMatchObject({ apiKey: 'key', tls: true });
  });

  test('has the certificates and the server name of the settings', () => {
    const pem = Uint8Array.from(Buffer.from('pem'));
    const file = join(folder, 'some.pem');
    const env = {
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: file,
      TEMPORAL_TLS_CLIENT_CERT_PATH: file,
      TEMPORAL_TLS_CLIENT_KEY_PATH: file,
      TEMPORAL_TLS_SERVER_NAME: 'temporal.example',
    };
    expect(temporalAccess(env).tls).toEqual({
      serverNameOverride: 'temporal.example',
      serverRootCACertificate: pem,
      clientCertPair: { crt: pem, key: pem },
    });
  });

  test.each([
    [{ TEMPORAL_TLS: 'TRUE' }, 'TEMPORAL_TLS: '],
    [{ TEMPORAL_TLS_CLIENT_CERT_PATH: 'a' }, 'TEMPORAL_TLS_CLIENT_CERT_PATH: comes with'],
    [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere/ca.pem' }, '/nowhere/ca.pem'],
  ])('is refused with the settings %j', (env, words) => {
    expect(() => readConfig({ ...NEEDED, ...env })).toThrow(words);
  });
});

test.each([
  ['127.0.0.1:7233', true],
  ['localhost:7233', true],
  ['[::1]:7233', true],
  ['10.0.0.5:7233', false],
  ['temporal:7233', false],
  ['127.0.0.1.example.com:7233', false],
])('Temporal at %s is allowed without TLS: %s', (address, isAllowed) => {
  expect(checkTemporalTls({ address }) === undefined).toBe(isAllowed);
  expect(checkTemporalTls({ address, tls: true })).toBeUndefined();
});

test.each([
  ['mongodb://localhost/?replicaSet=a', true],
  ['mongodb://127.0.0.1,[::1]:27018/?replicaSet=a', true],
  ['mongodb://%2Ftmp%2Fmongodb-27017.sock/', true],
  ['mongodb://127.0.0.1,db.example/?replicaSet=a', false],
  ['mongodb://user:secret@db.example/?tls=true', true],
  ['mongodb://db.example/?ssl=false', false],
  ['mongodb+srv://db.example/', true],
  ['mongodb+srv://db.example/?tls=false', false],
  ['mongodb://db.example/?tls=true&tlsInsecure=true', false],
  ['mongodb://db.example/?tls=true&tlsAllowInvalidCertificates=true', false],
  ['mongodb://db.example/?tls=true&tlsAllowInvalidHostnames=true', false],
])('MongoDB at %s is allowed: %s', (uri, isAllowed) => {
  const fault = checkMongoTls(uri);
  expect(fault === undefined).toBe(isAllowed);
  expect(fault ?? '').not.toContain('secret');
});

test('a process refuses servers on another machine without TLS unless a setting allows it', () => {
  const other = { MONGODB_URI: 'mongodb://db.example', TEMPORAL_ADDRESS: 'temporal.example:7233' };
  const env = { ...NEEDED, ...other };
  expect(() => readConfig(env)).toThrow(/temporal\.example.*db\.example/s);
  expect(readConfig({ ...env, ALLOW_CLEAR_TEXT: 'yes' }).temporal.tls).toBeUndefined();
});

test.each([
  [{ PUBLIC_URL: 'http://pay.example' }, 'PUBLIC_URL: http://pay.example has to be https'],
  [{ PUBLIC_URL: undefined }, 'PUBLIC_URL: http://localhost:8080 has to be https'],
  [{ WEBHOOK_ALLOW_PRIVATE: 'sandbox' }, 'WEBHOOK_ALLOW_PRIVATE: has to be unset'],
  [{ TRUSTED_PROXIES: undefined }, 'TRUSTED_PROXIES: has to be set'],
])('a process for a live bank refuses the settings %j unless it is a trial', (change, words) => {
  expect(readConfig(LIVE).PUBLIC_URL).toBe('https://pay.example');
  expect(() => readConfig({ ...LIVE, ...change })).toThrow(words);
  expect(() => readConfig({ ...LIVE, ...change, ALLOW_LIVE_DEMO: 'yes' })).not.toThrow();
  expect(() => readConfig({ ...LIVE, ...change, LIVE_CONNECTORS: ' ' })).not.toThrow();
});
