import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import { NODE_PARTS, type NodePartName } from './parts';
import { runCommand } from './provision/command';
import { listSources, staleSource } from './sources';
import type { Progress } from './terminal';

const POLL_MS = 300;
/** An editor or git writes several files. */
const SETTLE_MS = 100;
const BUILD_MS_MAX = 120_000;
const REQUIRE = /\brequire(?:\.resolve)?\(["'](\.[^"']*)["']\)/g;

export interface SourceWatch {
  root: string;
  restart(part: NodePartName): Promise<void>;
  parts: readonly NodePartName[];
  progress: Progress;
  signal: AbortSignal;
}

export async function watchSources(watch: SourceWatch): Promise<void> {
  const { root, parts, progress, signal } = watch;
  const options = { cwd: root, timeoutMs: BUILD_MS_MAX, signal };
  const node = (...args: string[]) => runCommand(process.execPath, args, options);
  let builtTimes = staleSource(root) === undefined ? serializeTimes(root) : '';
  let running = hashParts(root, parts);
  while (!signal.aborted) {
    await pause(POLL_MS, signal);
    try {
      if (serializeTimes(root) === builtTimes) continue;
      await pause(SETTLE_MS, signal);
      builtTimes = serializeTimes(root);
      await progress.during('Building', async () => {
        await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json');
        // The worker's code includes the workflows, which it loads as one file.
        if (hashParts(root, parts).worker !== running.worker) await node('dist/worker/bundle.js');
      });
      const next = hashParts(root, parts);
      const changed = parts.filter((part) => next[part] !== running[part]);
      const some = changed.length === 0 ? 'nothing to restart' : `restarting ${changed.join(', ')}`;
      progress.line(`Built: ${some}`);
      await Promise.all(changed.map((part) => watch.restart(part)));
      running = next;
    } catch (error) {
      if (!signal.aborted) progress.line(`Nothing was restarted: ${describeError(error)}`);
    }
  }
}

type CodeHashes = Partial<Record<NodePartName, string>>;

function hashParts(root: string, parts: readonly NodePartName[]): CodeHashes {
  return Object.fromEntries(
    parts.map((part) => {
      const hash = createHash('sha256');
      const code = [...readCode(join(root, 'dist', NODE_PARTS[part].script))].sort();
      for (const [file, text] of code) hash.update(`${file}\n${text}\n`);
      return [part, hash.digest('hex')];
    }),
  );
}

function serializeTimes(root: string): string {
  return JSON.stringify([...listSources(root)]);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

function readCode(program: string): Map<string, string> {
  const texts = new Map<string, string>();
  const queue = [program];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (texts.has(file)) continue;
    const text = readFileSync(file, 'utf8');
    texts.set(file, text);
    for (const [, target = ''] of text.matchAll(REQUIRE)) {
      const module = join(dirname(file), target);
      const candidates = [`${module}.js`, join(module, 'index.js'), module];
      queue.push(candidates.find((each) => existsSync(each)) ?? module);
    }
  }
  return texts;
}
