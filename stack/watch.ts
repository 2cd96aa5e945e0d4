import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../src/os/failure';
import { codeMark } from './code';
import { NODE_PART_NAMES, NODE_PARTS, type NodePartName } from './parts';
import { runCommand } from './provision/command';
import { sourcesOf, staleSource } from './sources';
import type { Progress } from './terminal';

/** Interval of looks at the files' times, which every editor and file system changes alike. */
const POLL_MS = 300;
/** Pause after a change, since an editor or git writes several files. */
const SETTLE_MS = 100;
const BUILD_MS_MAX = 120_000;

export interface SourceWatch {
  /** The checkout; its build is in `dist`. */
  root: string;
  /** Starts a part again, with the code that has just been built. */
  restart(part: NodePartName): Promise<void>;
  progress: Progress;
  signal: AbortSignal;
}

/**
 * Builds when a source changes and restarts the parts whose code became another, until `signal`.
 * A build with errors restarts nothing.
 */
export async function watchSources(watch: SourceWatch): Promise<void> {
  const { root, progress, signal } = watch;
  let built = staleSource(root) === undefined ? timesOf(root) : '';
  let running = marksOf(root);
  while (!signal.aborted) {
    await pause(POLL_MS, signal);
    try {
      if (timesOf(root) === built) continue;
      await pause(SETTLE_MS, signal);
      built = timesOf(root);
      await progress.during('Building', () => build(root, running, signal));
      running = await restartChanged(watch, running);
    } catch (error) {
      if (!signal.aborted) progress.line(`Nothing was restarted: ${reasonOf(error)}`);
    }
  }
}

type Marks = Record<NodePartName, string>;

async function build(root: string, running: Marks, signal: AbortSignal): Promise<void> {
  const options = { cwd: root, timeoutMs: BUILD_MS_MAX, signal };
  const node = (...args: string[]) => runCommand(process.execPath, args, options);
  await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json');
  // The worker's code includes the workflows, which it loads as one file.
  if (marksOf(root).worker !== running.worker) await node('dist/worker/bundle.js');
}

/** @returns the marks of what runs then. */
async function restartChanged(watch: SourceWatch, running: Marks): Promise<Marks> {
  const next = marksOf(watch.root);
  const changed = NODE_PART_NAMES.filter((part) => next[part] !== running[part]);
  const names = changed.length === 0 ? 'nothing to restart' : `restarting ${changed.join(', ')}`;
  watch.progress.line(`Built: ${names}`);
  await Promise.all(changed.map((part) => watch.restart(part)));
  return next;
}

function marksOf(root: string): Marks {
  const mark = (part: NodePartName) => codeMark(join(root, 'dist', NODE_PARTS[part].script));
  return { api: mark('api'), worker: mark('worker'), sandbox_bank: mark('sandbox_bank') };
}

function timesOf(root: string): string {
  return JSON.stringify([...sourcesOf(root)]);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
