import { promiseHooks } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded by `node --require` before the worker. Its workflow threads then collect no call stack of each
 * promise, which takes a sixth of their processor time: the SDK goes on without where it finds no hook.
 * @see docs/operations.md#on-servers-of-your-own
 */
function collectNoCallStacks(): void {
  promiseHooks.createHook = () => {
    // The SDK warns of it once in each thread, past the log.
    const { warn } = console;
    console.warn = () => {
      console.warn = warn;
    };
    throw new Error('Call stacks of promises are not collected.');
  };
}

if (!isMainThread) collectNoCallStacks();
