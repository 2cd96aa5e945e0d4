import {
  type ConnectionOptions,
  isGrpcServiceError,
  type WorkflowHandle,
} from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { eventually } from './eventually';
import { timeSkippingServer } from './servers';

/** A time-skipping server of its own, which knows the product's search attributes. */
export async function skippingServer(): Promise<TestWorkflowEnvironment> {
  const env = await startSkippingServer();
  await registerSearchAttributes(env);
  freeClock(env);
  return env;
}

/**
 * This server closes a connection that pings it oftener than every five minutes. The client would repeat the calls in
 * progress, so that an update whose run has ended since starts another run.
 */
const WITHOUT_PINGS = {
  name: 'without-pings',
  configureConnection: (options: ConnectionOptions): ConnectionOptions => ({
    ...options,
    channelArgs: { ...options.channelArgs, 'grpc.keepalive_time_ms': 2 ** 31 - 1 },
  }),
};

const STARTS_MAX = 40;

/** The SDK gives the server 5 s to start, which a busy machine may exceed. */
async function startSkippingServer(): Promise<TestWorkflowEnvironment> {
  const path = timeSkippingServer();
  for (let left = STARTS_MAX; ; left -= 1) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: 'existing-path', path } },
        plugins: [WITHOUT_PINGS],
      });
    } catch (error) {
      // An error of native code is of no class of this context.
      const isSlow = String(error).includes('did not start within');
      if (!isSlow || left === 1) throw error;
    }
  }
}

const {
  INDEXED_VALUE_TYPE_KEYWORD: Keyword,
  INDEXED_VALUE_TYPE_BOOL: Bool,
  INDEXED_VALUE_TYPE_INT: Int,
} = temporal.api.enums.v1.IndexedValueType;
const TYPES = { Keyword, Bool, Int };

async function registerSearchAttributes(env: TestWorkflowEnvironment): Promise<void> {
  const searchAttributes = Object.fromEntries(
    Object.entries(SEARCH_ATTRIBUTES).map(([name, type]) => [name, TYPES[type]]),
  );
  const namespace = env.namespace ?? 'default';
  await env.connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
}

/** Longer than the product lets any step take. */
const STANDSTILL_MS = 40_000;
/** A clock that is still lost after that is lost several times over. */
const AGAIN_MS = 2_000;
const SKIPPED_MS = 1_000;

/** Time for what the product does at once, where this server may first have lost its clock. */
export const FREED_MS_MAX = 2 * STANDSTILL_MS;

/**
 * Lets time go on where the server has lost it. It skips no time while a task or an activity is under
 * way, and goes on as if one were when its workflow is ended from outside meanwhile: once for each.
 */
function freeClock(env: TestWorkflowEnvironment): void {
  const { testService } = env.connection;
  if (testService === undefined) throw new Error('This server skips no time.');
  const freeing = async <T>(wait: () => Promise<T>): Promise<T> => {
    let unlocked = 0;
    let last = { ahead: await aheadMs(env), at: Date.now() };
    const freeOne = async (): Promise<void> => {
      const ahead = await aheadMs(env);
      if (ahead - last.ahead > SKIPPED_MS) last = { ahead, at: Date.now() };
      if (Date.now() - last.at < STANDSTILL_MS) return;
      await testService.unlockTimeSkipping({});
      unlocked += 1;
    };
    let attempt = Promise.resolve();
    // Refused where nothing holds the clock: then it is not time that is waited for.
    const free = () => {
      attempt = attempt.then(freeOne).catch(() => undefined);
    };
    const timer = setInterval(free, AGAIN_MS);
    try {
      return await wait();
    } finally {
      clearInterval(timer);
      await attempt;
      for (; unlocked > 0; unlocked -= 1) await testService.lockTimeSkipping({});
    }
  };
  const { sleep } = env;
  env.sleep = (duration) => freeing(() => sleep(duration));
  const { workflow } = env.client;
  const result = workflow.result.bind(workflow);
  workflow.result = (...args) => freeing(() => result(...args));
}

/**
 * Ends a workflow from outside once none of its tasks and activities is under way: what is cut off
 * holds the server's clock for the rest of the file.
 */
export async function terminateIdle(handle: WorkflowHandle): Promise<void> {
  await eventually('nothing to be under way', async () => {
    const before = await handle.describe();
    // It is answered after the task that is under way.
    await handle.query('state');
    const { raw, historyLength } = await handle.describe();
    // One that has failed waits for its next attempt.
    const isWaiting = (raw.pendingActivities ?? []).every(({ lastFailure }) => lastFailure);
    return isWaiting && historyLength === before.historyLength;
  });
  await handle.terminate('in a test');
}

async function aheadMs(env: TestWorkflowEnvironment): Promise<number> {
  return (await env.currentTimeMs()) - Date.now();
}

const GRPC_UNKNOWN = 2;

/** Asks once more where the server has failed by a fault of its own, as it does on a busy machine. */
export async function askTwice<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const { cause } = Object(error);
    if (isGrpcServiceError(cause) && cause.code === GRPC_UNKNOWN) return await ask();
    throw error;
  }
}
