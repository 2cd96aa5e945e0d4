import { createLogger } from '../../../src/base/log';
import { checkTemporal, type Namespace } from '../../../src/temporal/attributes';

const away = Object.assign(new Error('away'), { code: 14, details: 'away', metadata: {} });

/** Builds a server that answers from the third call on, with its store. */
function buildLateServer(persistenceStore: string) {
  let calls = 0;
  const answer = async () => {
    calls += 1;
    if (calls < 3) throw away;
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
