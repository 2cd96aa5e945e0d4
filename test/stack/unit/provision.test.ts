import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkHash, download } from '../../../stack/provision/download';
import { MONGODB_ARCHIVES, readMongodVersion } from '../../../stack/provision/mongod';
import {
  cacheDirectory,
  needSpace,
  provision,
  type Route,
  type Server,
} from '../../../stack/provision/provision';
import {
  readTemporalVersion,
  TEMPORAL_ARCHIVES,
  temporalCli,
} from '../../../stack/provision/temporal';
import { silentProgress } from '../../../stack/terminal';
import { useTempFolder } from '../../unit/temp-folder';

const cache = useTempFolder();
let lines: string[];
let fetches: number;
beforeEach(() => {
  lines = [];
  fetches = 0;
});

const context = () => ({
  cacheDir: cache.at(),
  env: {},
  progress: { ...silentProgress, line: (text: string) => void lines.push(text) },
  signal: new AbortController().signal,
});

function route(name: string, fetch: Route['fetch']): Route {
  return { name, folder: `${name}-1.0`, executable: 'server', megabytes: 1, fetch };
}

const succeed = (name: string): Route =>
  route(name, async (folder) => {
    fetches += 1;
    writeFileSync(join(folder, 'server'), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  });

const fail = (name: string, error: Error): Route =>
  route(name, async (folder) => {
    writeFileSync(join(folder, 'half'), 'of it');
    throw error;
  });

const provideFrom = (routes: Route[], more: Partial<Server> = {}, signal = context().signal) => {
  const help = ['set SERVER_ADDRESS', 'install Thing'];
  const server = { name: 'Server', installed: async () => undefined, routes, help };
  return provision({ ...server, ...more }, { ...context(), signal });
};
const provide = () => provideFrom([succeed('official')]);

test('an installed server is used, and nothing is fetched', async () => {
  const found = { path: '/usr/bin/server', from: 'on PATH' };
  const installed = async () => found;
  expect(await provideFrom([succeed('official')], { installed })).toEqual(found);
  expect(fetches).toBe(0);
  expect(lines).toEqual(['Server: on PATH (/usr/bin/server)']);
});

test('a route that fails is reported, and the next one is taken', async () => {
  const found = await provideFrom([fail('official', new Error('blocked')), succeed('other')]);
  expect(found).toEqual({ path: cache.at('other-1.0', 'server'), from: 'other' });
  expect(lines[0]).toBe('Server: official did not work, trying on');
});

test('when every route fails, the refusal lists them and every remedy, and the cache stays empty', async () => {
  const routes = [
    fail('official', new Error('blocked')),
    fail('full', Object.assign(new Error('ENOSPC: no space left, write'), { code: 'ENOSPC' })),
    fail('other', new Error('go is not installed')),
  ];
  await expect(provideFrom(routes)).rejects.toThrow(
    [
      'Server could not be had.',
      '  official: blocked',
      '  full: the disk is full',
      '  other: go is not installed',
      'Any one of these helps:',
      '  - set SERVER_ADDRESS',
      '  - install Thing',
    ].join('\n'),
  );
  expect(readdirSync(cache.at())).toEqual([]);
});

test('a server is refused in advance if the disk has too little space', async () => {
  await expect(needSpace(cache.at(), 1e12, 'Server')).rejects.toThrow(/MB free, Server needs/);
});

test('a cached server that was damaged is fetched again', async () => {
  const { path } = await provide();
  const whole = readFileSync(path, 'utf8');
  writeFileSync(path, whole.replace('echo', 'ECHO'));
  await provide();
  expect(fetches).toBe(2);
  expect(readFileSync(path, 'utf8')).toBe(whole);
});

test.each([
  ['server', 0o775],
  ['server', 0o757],
  ['.', 0o770],
  ['.', 0o707],
])('a cached server is fetched again if others may write "%s" (mode %i)', async (name, mode) => {
  const { path } = await provide();
  chmodSync(join(path, '..', name), mode);
  await provide();
  expect(fetches).toBe(2);
  await provide();
  expect(fetches).toBe(2);
});

test('a cached server with another hash than the known one is fetched again, whatever its manifest says', async () => {
  const hash = (name: string) =>
    createHash('sha256').update(`#!/bin/sh\necho ${name}\n`).digest('hex');
  const find = () => provideFrom([{ ...succeed('official'), sha256: hash('official') }]);
  const { path } = await find();
  writeFileSync(path, '#!/bin/sh\necho exchanged\n');
  const manifest = { from: 'official', sha256: hash('exchanged') };
  writeFileSync(join(path, '..', 'manifest.json'), JSON.stringify(manifest));
  expect((await find()).from).toBe('official');
  expect(fetches).toBe(2);
  expect((await find()).from).toBe('official, cached');
});

test('others cannot write the folder of the cache before anything in it is used', async () => {
  chmodSync(cache.at(), 0o777);
  const { path } = await provide();
  const modes = [cache.at(), join(path, '..'), path].map((each) => statSync(each).mode & 0o022);
  expect(modes).toEqual([0, 0, 0]);
  chmodSync(cache.at(), 0o770);
  expect((await provide()).from).toBe('official, cached');
  expect(cache.mode()).toBe(0o700);
});

/** Go that reports another hash, and writes down the settings with which it was called. */
const FAKE_GO = `#!/bin/sh
if [ "$1" = env ]; then echo https://proxy.example; exit; fi
env > "$0.env"
echo '{"Sum": "h1:other"}'
`;

test('a build with Go takes no module but the known one, whatever the settings of the user', async () => {
  cache.write('go', FAKE_GO, 0o755);
  const { PATH } = process.env;
  process.env['PATH'] = `${cache.at()}:${PATH}`;
  const lax = { GOENV: '/root/lax', GOSUMDB: 'off', GONOSUMDB: '*', GOPRIVATE: '*' };
  const env = { PATH, ...lax, GOINSECURE: '*', GOFLAGS: '-insecure' };
  const byGo = temporalCli.routes.find(({ name }) => name.includes('built with Go'));
  try {
    const build = byGo?.fetch(cache.at(), { say: () => undefined }, { ...context(), env });
    await expect(build).rejects.toThrow('has the hash h1:other, not the known one');
  } finally {
    process.env['PATH'] = PATH;
  }
  expect(cache.read('go.env').split('\n')).toEqual(
    expect.arrayContaining([
      ...['GOENV=off', 'GOSUMDB=sum.golang.org', 'GONOSUMDB=', 'GOPRIVATE=', 'GOINSECURE='],
      ...['GOFLAGS=-modcacherw', 'GOPROXY=https://proxy.example'],
    ]),
  );
});

test('two processes that need the same server at once fetch it once', async () => {
  const [one, two] = await Promise.all([provide(), provide()]);
  expect(one.path).toBe(two.path);
  expect(fetches).toBe(1);
  expect(existsSync(cache.at('server.lock'))).toBe(false);
});

test('a stop request ends the fetching, and no other route is tried', async () => {
  const stop = new AbortController();
  const slow = route('official', async () => {
    stop.abort(new Error('stopped'));
    throw new Error('killed');
  });
  const provided = provideFrom([slow, succeed('other')], {}, stop.signal);
  await expect(provided).rejects.toThrow('stopped');
  expect(fetches).toBe(0);
});

test.each([
  ['temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)', true],
  ['temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)', true],
  ['temporal version 1.0.0 (Server 1.24.2, UI 2.28.0)', false],
  ['temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', false],
  ['tctl version 1.18.0', false],
])('a Temporal that prints "%s" is usable: %s', (printed, usable) => {
  expect(readTemporalVersion(printed)).toBe(usable ? printed : undefined);
});

test('the version of a mongod is read from its output', () => {
  expect(readMongodVersion('db version v6.0.5\nBuild Info: {')).toBe('version 6.0.5');
  expect(readMongodVersion('db version v5.0.31')).toBeUndefined();
  expect(readMongodVersion('command not found')).toBeUndefined();
});

test('the cache is in the cache folder of the user', () => {
  expect(cacheDirectory({ XDG_CACHE_HOME: '/x' })).toBe('/x/durable-payments');
  expect(cacheDirectory({})).toMatch(/\/\.cache\/durable-payments$/);
});

describe('an archive', () => {
  const all = [TEMPORAL_ARCHIVES, MONGODB_ARCHIVES].flatMap((archives) => Object.entries(archives));

  test.each(all)('the archive for %s is fetched by https and known by its hash', (_, archive) => {
    expect(archive?.url).toMatch(/^https:\/\/(github\.com|fastdl\.mongodb\.org)\//);
    expect(archive?.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(all.filter(([, { sha256 } = {}]) => sha256 === archive?.sha256)).toHaveLength(1);
  });

  test('an archive with another hash than the known one is refused by its URL', () => {
    const known = { url: 'https://example.com/a.tgz', sha256: 'ab' };
    expect(() => checkHash('cd', known)).toThrow('https://example.com/a.tgz has the SHA-256 cd');
    expect(() => checkHash('ab', known)).not.toThrow();
  });

  test('nothing is downloaded without TLS', async () => {
    const { signal } = new AbortController();
    const archive = download('http://127.0.0.1:1/a.tgz', '/dev/null', { say: () => {} }, signal);
    await expect(archive).rejects.toThrow('127.0.0.1:1 has no https URL');
  });
});
