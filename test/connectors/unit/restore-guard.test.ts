import * as fs from 'node:fs';
import files from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from 'mongodb';
import { Registry } from 'prom-client';
import { openRestoreGuard, type SentBook } from '../../../connectors/kit/restore-guard';
import { openStateFile } from '../../../connectors/kit/state-file';
import { inBatches } from '../../../src/base/batches';
import { createLogger } from '../../../src/base/log';
import type { Stores } from '../../../src/store';
import { gate } from '../../support/gate';
import { useTempFolder } from '../../unit/temp-folder';

const folder = useTempFolder();

const seen = (count: number) =>
  ({ note: 'seen', installation: 'one', epoch: '2026-01-01T00:00:00.000Z', count }) as const;

describe('the state file', () => {
  const getPath = () => folder.at('acme.sandbox.jsonl');

  test('has what was written by this process and by others', async () => {
    const [first, second] = [openStateFile(getPath()), openStateFile(getPath())];
    expect(await first.read()).toBeNull();
    await first.write(seen(1), { note: 'leaving', id: 'a', installation: 'one' });
    await second.write({ note: 'left', id: 'a' }, seen(3));
    // Noted later, and seen before.
    await first.write(seen(2));
    const { seen: last, sent } = (await second.read()) ?? {};
    expect([last?.count, [...(sent ?? [])]]).toEqual([3, [['a', true]]]);
    expect(fs.statSync(getPath()).mode & 0o777).toBe(0o600);
  });

  test('ignores a last line that is cut off, reads on after it, and is none where it is the only one', async () => {
    const file = openStateFile(getPath());
    await file.write(seen(1), seen(2));
    fs.truncateSync(getPath(), fs.readFileSync(getPath()).length - 5);
    const again = openStateFile(getPath());
    expect(await again.read()).toMatchObject({ seen: { count: 1 }, damaged: null });
    await again.write(seen(4));
    const whole = { seen: { count: 4 }, damaged: null };
    expect(await openStateFile(getPath()).read()).toMatchObject(whole);
    fs.writeFileSync(getPath(), '{"note":"seen","inst');
    expect(await openStateFile(getPath()).read()).toBeNull();
  });

  test('has not written what a full disk cuts off', async () => {
    const file = openStateFile(getPath());
    await file.write(seen(1));
    const handle = await files.open(getPath());
    await handle.close();
    const write = jest.spyOn(Object.getPrototypeOf(handle), 'write');
    write.mockImplementationOnce(async () => {
      fs.appendFileSync(getPath(), '{"note":"left"');
      return { bytesWritten: 14 };
    });
    await expect(file.write({ note: 'left', id: 'a' })).rejects.toThrow('could not be written');
    write.mockRestore();
    await file.write(seen(2));
    const { seen: last, sent, damaged } = (await openStateFile(getPath()).read()) ?? {};
    expect([last?.count, sent?.size, damaged]).toEqual([2, 0, null]);
  });

  test('names a line that it cannot read', async () => {
    const file = openStateFile(getPath());
    await file.write(seen(1));
    fs.appendFileSync(getPath(), 'nonsense\n');
    await file.write(seen(2));
    expect(await file.read()).toMatchObject({ seen: { count: 2 }, damaged: 2 });
    await file.compact();
    expect(await file.read()).toMatchObject({ seen: { count: 2 }, damaged: null });
  });

  test('stays small, and has the newest of what was sent', async () => {
    const file = openStateFile(getPath());
    const ids = Array.from({ length: 1_200 }, (_, index) => `file-${index}`);
    for await (const batch of inBatches(ids, 25)) {
      await file.write(...batch.map((id) => ({ note: 'left', id }) as const));
    }
    const { sent = new Map() } = (await openStateFile(getPath()).read()) ?? {};
    expect(sent.size).toBeGreaterThanOrEqual(1_000);
    expect([...sent.keys()].slice(-1_000)).toEqual(ids.slice(-1_000));
    expect(fs.readFileSync(getPath(), 'utf8').split('\n').length).toBeLessThan(502);
  });

  /** Stops a call of a function of `fs` before it begins, by default the next one. */
  function hold(name: 'open' | 'rename', { calls = 0 } = {}) {
    const [reached, held] = [gate(), gate()];
    const call: (...args: never[]) => Promise<unknown> = files[name];
    const spy = jest.spyOn(files, name);
    for (let passed = 0; passed < calls; passed += 1) spy.mockImplementationOnce(call as never);
    spy.mockImplementationOnce((async (...args: never[]) => {
      reached.release();
      await held.opened;
      return await call(...args);
    }) as never);
    return { reached: reached.opened, release: held.release };
  }
  afterEach(() => jest.restoreAllMocks());

  test.each(['open', 'rename'] as const)(
    'loses nothing that others write and replace while a process comes to `%s`',
    async (step) => {
      const [first, second] = [openStateFile(getPath()), openStateFile(getPath())];
      await first.write({ note: 'left', id: 'a' });
      await first.read();
      const { reached, release } = hold(step);
      const compacted = first.compact();
      await reached;
      const others = (async () => {
        await second.write({ note: 'left', id: 'b' });
        await second.compact();
        await second.write({ note: 'left', id: 'c' });
      })();
      // A process that waits for the first has written nothing yet.
      await Promise.race([others, sleep(200)]);
      release();
      await Promise.all([compacted, others]);
      const { sent = new Map() } = (await openStateFile(getPath()).read()) ?? {};
      expect([...sent.keys()]).toEqual(['a', 'b', 'c']);
    },
  );

  test('is written on after a process was killed while it replaced it', async () => {
    fs.writeFileSync(`${getPath()}.lock`, '');
    const file = openStateFile(getPath(), { lockMs: 50 });
    await file.write(seen(1));
    expect(await file.read()).toMatchObject({ seen: { count: 1 } });
    expect(fs.existsSync(`${getPath()}.lock`)).toBe(false);
  });

  test('is not replaced by a process that took longer than others wait for it', async () => {
    const file = openStateFile(getPath(), { lockMs: 50 });
    await file.write(seen(1));
    const { ino } = fs.statSync(getPath());
    // The first call creates the lock.
    const { reached, release } = hold('open', { calls: 1 });
    const compacted = file.compact();
    await reached;
    await sleep(60);
    release();
    await expect(compacted).rejects.toThrow('took too long');
    expect(fs.statSync(getPath()).ino).toBe(ino);
  });

  test('is read again where another file has the same number', async () => {
    const file = openStateFile(getPath());
    await file.write(seen(1));
    const { ino } = fs.statSync(getPath());
    const other = [{ note: 'left', id: 'a' }, seen(3)]
      .map((note) => `${JSON.stringify(note)}\n`)
      .join('');
    // The file system may give the number of a deleted file to the next one.
    for (let tries = 0; tries < 20; tries += 1) {
      fs.rmSync(getPath());
      fs.writeFileSync(getPath(), other);
      if (fs.statSync(getPath()).ino === ino) break;
    }
    const expected = { seen: { count: 3 }, sent: new Map([['a', true]]), damaged: null };
    expect(await file.read()).toMatchObject(expected);
  });
});

const T1 = '2026-01-01T00:01:00.000Z';
const T2 = '2026-01-01T00:02:00.000Z';

/** A connector's MongoDB, as far as the guard reads it. */
function createWorld(book: Partial<SentBook> = {}) {
  const epoch = epochAt('one', T1) as ReturnType<typeof epochAt> | null;
  const state = { epoch, count: 0, released: new Set<string>() };
  const counts = {
    findOne: async () => ({ count: state.count }),
    findOneAndUpdate: async () => {
      state.count += 1;
      return { count: state.count };
    },
  };
  const lines: string[] = [];
  const open = () =>
    openRestoreGuard(
      {
        connector: 'acme',
        stores: {
          epoch: { read: async () => state.epoch },
          connectorReleases: { get: async (id: string) => (state.released.has(id) ? {} : null) },
        } as unknown as Stores,
        registry: new Registry(),
        now: () => new Date(),
        log: createLogger('test', 'info', { write: (line: string) => lines.push(line) }),
      },
      {
        ...{ environment: 'sandbox', dir: folder.at('state') },
        db: { collection: () => counts } as unknown as Db,
        book: { hasSent: async () => false, ...book },
      },
    );
  return { state, open, lines };
}

describe('a restore guard', () => {
  test.each([
    ['an earlier epoch', { epoch: epochAt('one', T1) }, /state of/],
    ['another installation', { epoch: epochAt('two', T2) }, /two/],
    ['a lower count', { count: 0 }, /older than its state file/],
  ])('stops a running connector, and the next one, for %s', async (_what, restored, why) => {
    const { state, open, lines } = createWorld();
    state.epoch = epochAt('one', T2);
    const restoreGuard = await open();
    await restoreGuard.confirm();
    Object.assign(state, restored);
    await expect(restoreGuard.confirm()).rejects.toThrow(/: not instructed\.$/);
    // A worker raises the epoch of a restored database.
    state.epoch = epochAt('one', '2027-01-01T00:00:00.000Z');
    const next = await open();
    await expect(next.confirm()).rejects.toThrow(why);
    expect(lines.join('')).toContain('connector release acme --env sandbox --after-restore');
    state.released.add(String((await next.check())?.id));
    await next.confirm();
    await restoreGuard.confirm();
    await (await open()).confirm();
  });

  test('does not answer while MongoDB has no epoch, and goes on afterwards', async () => {
    const { state, open } = createWorld();
    const restoreGuard = await open();
    const { epoch } = state;
    state.epoch = null;
    const none = 'MongoDB has no epoch, as during a restore';
    await expect(restoreGuard.confirm()).rejects.toThrow(none);
    state.epoch = epoch;
    await restoreGuard.confirm();
  });

  test('is missed where the book has sent', async () => {
    const { open } = createWorld({ hasSent: async () => true });
    const restoreGuard = await open();
    await expect(restoreGuard.confirm()).rejects.toThrow('its state file is missing');
  });

  test('stops for what the book does not know, and acknowledges it when released', async () => {
    const known = new Set(['a', 'b']);
    const { state, open } = createWorld({
      listUnknown: async (sent) => sent.flatMap(({ id }) => (known.has(id) ? [] : [id])),
    });
    const restoreGuard = await open();
    for (const id of known) {
      await restoreGuard.leaving(id);
      await restoreGuard.left(id);
    }
    await restoreGuard.confirm();
    known.delete('b');
    const stop = await restoreGuard.check();
    expect(stop?.reason).toBe('The connector has sent what its database does not know, b');
    state.released.add(String(stop?.id));
    await restoreGuard.confirm();
    const next = await open();
    await next.confirm();
    expect([await next.hasLeft('a'), await next.hasLeft('b')]).toEqual([true, true]);
  });

  test('protects look-ups, too, and ends no later stop by an earlier release', async () => {
    const { state, open } = createWorld();
    state.epoch = epochAt('one', T2);
    const restoreGuard = await open();
    const { lookUp } = restoreGuard.protect({ lookUp: async () => 'not_found' });
    expect(await lookUp()).toBe('not_found');
    for (const _again of [1, 2]) {
      state.epoch = epochAt('one', T1);
      await expect(lookUp()).rejects.toThrow('not instructed');
      state.released.add(String((await restoreGuard.check())?.id));
      expect(await lookUp()).toBe('not_found');
      state.epoch = epochAt('one', T2);
      await restoreGuard.check();
    }
  });
});

function epochAt(installation: string, at: string) {
  return { installation, at };
}
