import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowFailedError } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type NativeConnection,
  Worker,
} from '@temporalio/worker';
import { z } from 'zod';
import { runWorker } from '../../src/temporal/native';
import type { ConnectorActivities } from '../contract/activities';
import type { instructConnector } from './instruct-workflow';
import { Broken, NotApplicable } from './verdict';

const RETRY_MS = 500;
/** Longer than an attempt may take to reach the bank, and a call that is lost after it. */
const PATIENCE_MS = 120_000;

export type ActivityName = keyof ConnectorActivities;

export type Outcome = { answer: Answer } | { failure: string };

const Answer = z.looseObject({ outcome: z.string(), bank_reference: z.unknown().optional() });
export type Answer = z.infer<typeof Answer>;

interface InstructorDeps {
  temporal: Client;
  connection: NativeConnection;
  namespace: string;
  connectorQueue: string;
}

let bundle: ReturnType<typeof bundleWorkflowCode> | undefined;

export type Instructor = Awaited<ReturnType<typeof startInstructor>>;

export async function startInstructor(deps: InstructorDeps) {
  const { temporal, connection, namespace, connectorQueue } = deps;
  const taskQueue = `connector-check-${randomUUID()}`;
  const workflowsPath = require.resolve('./instruct-workflow');
  bundle ??= bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  const options = { connection, namespace, taskQueue, workflowBundle: await bundle };
  const worker = await Worker.create(options);
  const running = runWorker(worker);
  /** @throws NotApplicable if the connector has no such activity */
  const ask = async (activity: ActivityName, input: object): Promise<Outcome> => {
    try {
      const workflowId = `connector-check:${randomUUID()}`;
      const args: Parameters<typeof instructConnector> = [connectorQueue, activity, input];
      const answer: unknown = await temporal.workflow.execute('instructConnector', {
        taskQueue,
        workflowId,
        args,
      });
      const { data } = Answer.safeParse(answer);
      if (data === undefined) throw new Broken(`${activity} answered without an outcome.`);
      return { answer: data };
    } catch (error) {
      if (!(error instanceof WorkflowFailedError)) throw error;
      const parts: string[] = [];
      for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
        const fields = JSON.stringify(Object.values(cause));
        parts.push(`${cause.message}\n${cause.stack ?? ''}\n${fields}`);
      }
      const failure = parts.join('\n');
      if (failure.includes('is not registered on this Worker')) {
        throw new NotApplicable(`The connector has no ${activity}.`);
      }
      return { failure };
    }
  };
  const read = async (activity: ActivityName, input: object): Promise<Answer> => {
    const outcome = await ask(activity, input);
    if ('answer' in outcome) return outcome.answer;
    throw new Broken(`${activity} failed: ${shorten(outcome.failure)}`);
  };
  return {
    ask,
    /** @throws Broken if it fails */
    read,
    /** @throws Broken if never answered */
    readAtLast: async (activity: ActivityName, input: object): Promise<Answer> => {
      const end = Date.now() + PATIENCE_MS;
      for (;;) {
        const outcome = await ask(activity, input);
        if ('answer' in outcome) return outcome.answer;
        if (Date.now() > end) {
          const wait = `no answer in ${PATIENCE_MS / 1_000} s`;
          throw new Broken(`${activity} has ${wait}, but fails: ${shorten(outcome.failure)}`);
        }
        await sleep(RETRY_MS);
      }
    },
    stop: async (): Promise<void> => {
      worker.shutdown();
      await running;
    },
  };
}

function shorten(failure: string): string {
  const [first = '', second = first] = failure
    .split('\n')
    .filter((line) => line !== '' && !/^ +at |^[[\w]+(Failure|Error)?: ?$|^\[/.test(line));
  return (first.startsWith('Activity task failed') ? second : first).slice(0, 160);
}
