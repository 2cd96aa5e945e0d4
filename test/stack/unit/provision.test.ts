import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '../../../stack/provision';
import { needSpace } from '../../../stack/provision/cache';
import { mongodVersion } from '../../../stack/provision/mongod';
import { provision, type Route, type Server } from '../../../stack/provision/provision';
import { isUsableTemporal, temporalCli } from '../../../stack/provision/temporal';
import { silentProgress } from '../../../stack/terminal';

let cacheDir: string;
let lines: string[];
beforeEach(() => {
  cacheDir = mkdtempSync(join(tmpdir(), 'stack-cache-'));
  lines = [];
});
afterEach(() => rmSync(cacheDir, { recursive: true }));

const context = () => ({
  cacheDir,
  env: {},
  progress: { ...silentProgress, line: (text: string) => void lines.push(text) },
  signal: new AbortController().signal,
});

function route(name: string, fetch: Route['fetch']): Route {
  return { name, folder: `${name}-1.0`, executable: 'server', megabytes: 1, fetch };
}

const works = (name: string, count = { fetches: 0 }): Route =>
  route(name, async (folder) => {
    count.fetches += 1;
    writeFileSync(join(folder, 'server'), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  });

const fails = (name: string, why: string): Route =>
  route(name, async (folder) => {
    writeFileSync(join(folder, 'half'), 'of it');
    throw new Error(why);
  });

function server(...routes: Route[]): Server {
  const help = ['set SERVER_ADDRESS', 'install Thing'];
  return { name: 'Server', installed: async () => undefined, routes, help };
}

test('what is installed is used and nothing is fetched', async () => {
  const count = { fetches: 0 };
  const installed = async () => ({ path: '/usr/bin/server', from: 'on PATH' });
  const found = await provision({ ...server(works('official', count)), installed }, context());
  expect(found).toEqual({ path: '/usr/bin/server', from: 'on PATH' });
  expect(count.fetches).toBe(0);
  expect(lines).toEqual(['Server: on PATH (/usr/bin/server)']);
});

test('the next route is taken when one fails, and says so', async () => {
  const found = await provision(server(fails('official', 'blocked'), works('other')), context());
  expect(found).toEqual({ path: join(cacheDir, 'other-1.0', 'server'), from: 'other' });
  expect(lines[0]).toBe('Server: official did not work, trying on');
});

test('a route that failed leaves nothing in the cache', async () => {
  await expect(provision(server(fails('official', 'blocked')), context())).rejects.toThrow();
  expect(readdirSync(cacheDir)).toEqual([]);
});

test('when no route works, the refusal says what was tried and every way to help', async () => {
  const tried = server(fails('official', 'blocked'), fails('other', 'go is not installed'));
  await expect(provision(tried, context())).rejects.toThrow(
    [
      'Server could not be had.',
      '  official: blocked',
      '  other: go is not installed',
      'Any one of these helps:',
      '  - set SERVER_ADDRESS',
      '  - install Thing',
    ].join('\n'),
  );
});

test('a full disk is called by its name', async () => {
  const full = route('official', async () => {
    throw Object.assign(new Error('ENOSPC: no space left, write'), { code: 'ENOSPC' });
  });
  await expect(provision(server(full), context())).rejects.toThrow('official: the disk is full');
  await expect(needSpace(cacheDir, 1e12, 'Server')).rejects.toThrow(/MB free, Server needs/);
});

test('what was fetched once is found in the cache', async () => {
  const count = { fetches: 0 };
  await provision(server(works('official', count)), context());
  const again = await provision(server(works('official', count)), context());
  expect(again.from).toBe('official, cached');
  expect(count.fetches).toBe(1);
});

test('a cached server that was damaged is fetched again', async () => {
  const count = { fetches: 0 };
  const { path } = await provision(server(works('official', count)), context());
  const whole = readFileSync(path, 'utf8');
  writeFileSync(path, whole.replace('echo', 'ECHO'));
  chmodSync(path, 0o755);
  await provision(server(works('official', count)), context());
  expect(count.fetches).toBe(2);
  expect(readFileSync(path, 'utf8')).toBe(whole);
});

test.each([
  ['server', 0o775],
  ['server', 0o757],
  ['.', 0o770],
  ['.', 0o707],
])('a cached server whose %s others may exchange is fetched again', async (name, mode) => {
  const count = { fetches: 0 };
  const { path } = await provision(server(works('official', count)), context());
  chmodSync(join(path, '..', name), mode);
  await provision(server(works('official', count)), context());
  expect(count.fetches).toBe(2);
  await provision(server(works('official', count)), context());
  expect(count.fetches).toBe(2);
});

test('a cached server whose hash is known is fetched again, whatever its manifest says', async () => {
  const count = { fetches: 0 };
  const known = createHash('sha256').update('#!/bin/sh\necho official\n').digest('hex');
  const find = () => provision(server({ ...works('official', count), sha256: known }), context());
  const { path } = await find();
  const other = createHash('sha256').update('#!/bin/sh\necho exchanged\n').digest('hex');
  writeFileSync(path, '#!/bin/sh\necho exchanged\n');
  const manifest = { from: 'official', bytes: statSync(path).size, sha256: other };
  writeFileSync(join(path, '..', 'manifest.json'), JSON.stringify(manifest));
  expect((await find()).from).toBe('official');
  expect(count.fetches).toBe(2);
  expect((await find()).from).toBe('official, cached');
});

test('the folder of the cache is closed to others before anything in it is used', async () => {
  chmodSync(cacheDir, 0o777);
  const { path } = await provision(server(works('official')), context());
  expect([cacheDir, join(path, '..'), path].map((each) => statSync(each).mode & 0o022)).toEqual([
    0, 0, 0,
  ]);
  chmodSync(cacheDir, 0o770);
  expect((await provision(server(works('official')), context())).from).toBe('official, cached');
  expect(statSync(cacheDir).mode & 0o777).toBe(0o700);
});

/** Go that says another hash, and writes down the settings with which it is asked for modules. */
const FAKE_GO = `#!/bin/sh
if [ "$1" = env ]; then echo https://proxy.example; exit; fi
env > "$0.env"
echo '{"Sum": "h1:other"}'
`;

test('a build with Go takes no module but the known one, whatever the user’s settings say', async () => {
  const go = join(cacheDir, 'go');
  writeFileSync(go, FAKE_GO, { mode: 0o755 });
  const path = process.env['PATH'];
  process.env['PATH'] = `${cacheDir}:${path}`;
  const lax = {
    GOENV: '/root/lax',
    GOSUMDB: 'off',
    GONOSUMDB: '*',
    GOPRIVATE: '*',
    GOINSECURE: '*',
  };
  const env = { PATH: path, ...lax, GOFLAGS: '-insecure' };
  const byGo = temporalCli.routes.find(({ name }) => name.includes('built with Go'));
  const task = { say: () => undefined };
  try {
    const build = byGo?.fetch(cacheDir, task, { ...context(), env });
    await expect(build).rejects.toThrow('has the hash h1:other, not the known one');
  } finally {
    process.env['PATH'] = path;
  }
  const asked = readFileSync(`${go}.env`, 'utf8').split('\n');
  expect(asked).toEqual(
    expect.arrayContaining([
      ...['GOENV=off', 'GOSUMDB=sum.golang.org', 'GONOSUMDB=', 'GOPRIVATE=', 'GOINSECURE='],
      ...['GOFLAGS=-modcacherw', 'GOPROXY=https://proxy.example'],
    ]),
  );
});

test('two that want the same server at once fetch it once', async () => {
  const count = { fetches: 0 };
  const both = server(works('official', count));
  const [one, two] = await Promise.all([provision(both, context()), provision(both, context())]);
  expect(one.path).toBe(two.path);
  expect(count.fetches).toBe(1);
  expect(existsSync(join(cacheDir, 'server.lock'))).toBe(false);
});

test('a stop request ends the fetching and is not taken for a failed route', async () => {
  const stop = new AbortController();
  const slow = route('official', async () => {
    stop.abort(new Error('stopped'));
    throw new Error('killed');
  });
  const count = { fetches: 0 };
  const asked = provision(server(slow, works('other', count)), {
    ...context(),
    signal: stop.signal,
  });
  await expect(asked).rejects.toThrow('stopped');
  expect(count.fetches).toBe(0);
});

test.each([
  ['temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)', true],
  ['temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)', true],
  ['temporal version 1.0.0 (Server 1.24.2, UI 2.28.0)', false],
  ['temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', false],
  ['tctl version 1.18.0', false],
])('%s: usable %s', (said, usable) => {
  expect(isUsableTemporal(said)).toBe(usable);
});

test('the version of a mongod is read from what it says', () => {
  expect(mongodVersion('db version v6.0.5\nBuild Info: {')).toEqual({ major: 6, text: '6.0.5' });
  expect(mongodVersion('command not found')).toBeUndefined();
});

test('the cache is in the cache folder of the user', () => {
  expect(cacheDirectory({ XDG_CACHE_HOME: '/x' })).toBe('/x/durable-payments');
  expect(cacheDirectory({})).toMatch(/\/\.cache\/durable-payments$/);
});
