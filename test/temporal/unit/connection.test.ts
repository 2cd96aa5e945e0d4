import { once } from 'node:events';
import { createServer } from 'node:http2';
import { IllegalStateError, NamespaceNotFoundError } from '@temporalio/common';
import { createLogger } from '../../../src/base/log';
import { reportsStuck } from '../../../src/domain/operators/operator-act';
import { connectTemporal } from '../../../src/temporal/access';
import { checkTemporal, type Namespace } from '../../../src/temporal/attributes';
import { findConfigFault, findConnectFault } from '../../../src/temporal/deadline';
import { runWorker, runWorkerUntil } from '../../../src/temporal/native';
import { getPort } from '../../support/product';

/** Builds an error of the gRPC client. */
const buildGrpcError = (code: number, details: string): Error =>
  Object.assign(new Error(details), { code, details, metadata: {} });

describe('a gRPC error', () => {
  test.each([
    [16, 'Request unauthorized.', /TEMPORAL_API_KEY, TEMPORAL_TLS_…\): Request unauthorized/],
    [7, 'Request unauthorized.', /TEMPORAL_API_KEY\): Request unauthorized/],
    [5, 'Namespace shop is not found.', /TEMPORAL_NAMESPACE/],
    [3, 'Namespace shop has no mapping defined for search attribute X', /`migrate` registers it/],
  ])('%i, "%s", is a fault of the configuration', (code, details, words) => {
    const error = buildGrpcError(code, details);
    expect(findConfigFault(error)?.message).toMatch(words);
    expect(findConfigFault(new Error('Failed', { cause: error }))?.cause).toBe(error);
  });

  test.each([
    [14, 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:7233'],
    [4, 'Deadline exceeded'],
    [8, 'namespace rate limit exceeded'],
    [5, 'workflow not found for ID: payment:1'],
    [3, 'WorkflowId is not set on request.'],
  ])('%i, "%s", is no fault of the configuration', (code, details) => {
    expect(findConfigFault(buildGrpcError(code, details))).toBeUndefined();
  });

  test('of TLS is a fault while a process connects, and none later', () => {
    const lost = 'No connection established. Last error: ';
    const expired = buildGrpcError(14, `${lost}certificate has expired`);
    expect(findConnectFault(expired)?.message).toMatch(/TEMPORAL_TLS_….*expired/);
    expect(findConfigFault(expired)).toBeUndefined();
    expect(findConnectFault(buildGrpcError(14, `${lost}connect ECONNREFUSED`))).toBeUndefined();
  });
});

test('a namespace that the SDK does not find is a fault of the configuration', () => {
  expect(findConfigFault(new NamespaceNotFoundError('shop'))?.message).toContain('namespace shop');
  expect(findConfigFault(undefined)).toBeUndefined();
});

test('lists and counts begin ten times a second at most, as a server admits them', async () => {
  const { workflow, connection } = connectTemporal({
    address: '127.0.0.1:9',
    namespace: 'default',
  });
  const began = performance.now();
  // Nobody listens there: without a pace, all have failed after half a second.
  await Promise.allSettled(Array.from({ length: 11 }, () => workflow.count()));
  expect(performance.now() - began).toBeGreaterThan(1_000);
  await connection.close();
});

/** Builds a server that answers from the third call on, with its store. */
function buildLateServer(persistenceStore: string) {
  let calls = 0;
  const answer = async () => {
    calls += 1;
    if (calls < 3) throw buildGrpcError(14, 'away');
    return { persistenceStore };
  };
  const workflowService = { describeNamespace: answer, getClusterInfo: answer };
  const withDeadline = (_deadline: unknown, call: () => Promise<unknown>) => call();
  const where: unknown = { connection: { workflowService, withDeadline }, namespace: 'default' };
  const isNamespace = (value: unknown): value is Namespace => value === where;
  if (!isNamespace(where)) throw new Error('No namespace.');
  return { where, calls: () => calls };
}

test.each([
  ['sqlite', true, 3, ['Temporal is a development server']],
  ['postgres12', true, 3, []],
  ['sqlite', false, 1, []],
])(
  'a late server with the store %s (live: %s) gets %i calls and has the faults %j',
  async (store, live, calledMin, faults) => {
    const { where, calls } = buildLateServer(store);
    const onFault = jest.fn<void, [Error]>();
    await checkTemporal(where, createLogger('test', 'silent'), live, onFault);
    const deadline = Date.now() + 60_000;
    while (calls() < calledMin && Date.now() < deadline) await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(calls()).toBe(calledMin);
    const messages = onFault.mock.calls.map(([{ message }]) => message);
    expect(messages).toEqual(faults.map((text) => expect.stringContaining(text)));
  },
);

describe('a worker', () => {
  const STILL_IN_USE = new IllegalStateError(
    'Worker still in use: Expected 1 reference, but got 2',
  );
  /** Builds a worker that ends in this state, with this error. */
  const buildWorker = (state: 'STOPPED' | 'FAILED', error: Error) => ({
    run: () => Promise.reject(error),
    getState: () => state,
  });

  test('that has stopped ends without error, even if the SDK cannot release it yet', async () => {
    await expect(runWorker(buildWorker('STOPPED', STILL_IN_USE))).resolves.toBeUndefined();
  });

  test.each([
    ['failed', buildWorker('FAILED', STILL_IN_USE)],
    ['broke', buildWorker('STOPPED', new Error('broken'))],
  ])('that %s rejects', async (_, worker) => {
    await expect(runWorker(worker)).rejects.toThrow(/still in use|broken/);
  });

  test('that is shut down ends without error, even if the SDK cannot release it yet', async () => {
    let state: 'INITIALIZED' | 'RUNNING' | 'STOPPED' = 'INITIALIZED';
    let release: (error: Error) => void = () => undefined;
    const worker = {
      getState: () => state,
      run: () => {
        state = 'RUNNING';
        return new Promise<void>((_, reject) => {
          release = reject;
        });
      },
      shutdown: () => {
        state = 'STOPPED';
        release(STILL_IN_USE);
      },
    };
    await expect(runWorkerUntil(worker, Promise.resolve())).resolves.toBeUndefined();
    expect(state).toBe('STOPPED');
  });
});

test('a stuck step is reported after five minutes, then more and more rarely', () => {
  const attempts = Array.from({ length: 600 }, (_, index) => index + 1);
  expect(attempts.filter(reportsStuck)).toEqual([16, 32, 64, 128, 256, 512]);
});

test('a connection that is closed between two attempts of a call refuses the call', async () => {
  const server = createServer();
  const attempted = new Promise<void>((resolve) => {
    server.on('stream', (stream) => {
      const headers = { 'content-type': 'application/grpc', 'grpc-status': '14' };
      stream.respond({ ':status': 200, ...headers }, { endStream: true });
      stream.on('close', resolve);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${getPort(server.address())}`;
  const { connection } = connectTemporal({ address, namespace: 'default' });
  const refused = expect(connection.workflowService.getSystemInfo({})).rejects.toMatchObject({
    code: 14,
  });
  await attempted;
  await connection.close();
  await refused;
  await new Promise((resolve) => server.close(resolve));
});
