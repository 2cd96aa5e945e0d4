import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { SEARCH_ATTRIBUTES } from '../src/domain/search-attributes';
import { type Child, startChild, waitUntilUp } from './child-process';
import { LOOPBACK, needPortFor } from './ports';

const UP_MS_MAX = 60_000;
const STOP_MS_MAX = 6_000;
const CALL_MS_MAX = 2_000;

/** 30 days, for which ids stay reserved. */
const RETENTION_MS = 720 * 3_600_000;

export interface TemporalOptions {
  executable: string;
  dbFile: string;
  port: number;
  uiPort?: number;
  namespace?: string;
  logFile: string;
  signal?: AbortSignal;
  settings?: readonly string[];
}

export interface TemporalServer extends Child {
  address: string;
}

/**
 * Serves this machine only. Resolves once its namespace answers.
 * @throws OperationalError with the end of its log if it does not come up
 */
export async function startTemporal(options: TemporalOptions): Promise<TemporalServer> {
  await needPortFor('Temporal', options.port);
  mkdirSync(dirname(options.dbFile), { recursive: true });
  const namespace = options.namespace ?? 'default';
  const address = `${LOOPBACK}:${options.port}`;
  const child = await startChild({
    name: 'Temporal',
    command: options.executable,
    args: serverArguments(options, namespace),
    logFile: options.logFile,
    graceMs: STOP_MS_MAX,
  });
  try {
    const answers = async (): Promise<void> => {
      const connection = await Connection.connect({ address, connectTimeout: CALL_MS_MAX });
      try {
        const config = { workflowExecutionRetentionTtl: msToTs(RETENTION_MS) };
        await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
          connection.workflowService.updateNamespace({ namespace, config }),
        );
      } finally {
        await connection.close();
      }
    };
    await waitUntilUp(child, options.logFile, UP_MS_MAX, answers, options.signal);
    // The server makes its files readable to all.
    for (const file of ['', '-wal', '-shm'].map((suffix) => `${options.dbFile}${suffix}`)) {
      if (existsSync(file)) chmodSync(file, 0o600);
    }
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { ...child, address };
}

function serverArguments(options: TemporalOptions, namespace: string): string[] {
  const ui = options.uiPort === undefined ? ['--headless'] : ['--ui-port', String(options.uiPort)];
  return [
    ...['server', 'start-dev', '--ip', LOOPBACK, '--port', String(options.port), ...ui],
    ...['--db-filename', options.dbFile, '--namespace', namespace],
    ...['--log-format', 'json', '--log-level', 'warn'],
    // The write-ahead log survives a kill; only a power cut may lose the last commits.
    ...['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal'],
    ...[...DYNAMIC_CONFIG, ...(options.settings ?? [])].flatMap((setting) => [
      '--dynamic-config-value',
      setting,
    ]),
    ...Object.entries(SEARCH_ATTRIBUTES).flatMap(([name, type]) => [
      '--search-attribute',
      `${name}=${type}`,
    ]),
  ];
}

const DYNAMIC_CONFIG = [
  // The one shard polls 20 times a second by default, so that every hop would wait up to 50 ms.
  'history.transferProcessorMaxPollRPS=2000',
  'history.timerProcessorMaxPollRPS=2000',
  'history.visibilityProcessorMaxPollRPS=2000',
  'system.enableActivityEagerExecution=true',
  // A queue serves accounts in turn.
  'matching.enableFairness=true',
];
