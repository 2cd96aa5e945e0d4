import { createLogger } from '../../../src/base/log';
import { checkTemporal, type Namespace } from '../../../src/temporal/attributes';

const away = Object.assign(new Error('away'), { code: 14, details: 'away', metadata: {} });

/** Server that answers from the third call on, and then reports its store. */
function startLate(persistenceStore: string) {
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
])('a server with %s that answers late, where live is %s', async (store, live, asked, faults) => {
  const { where, calls } = startLate(store);
  const onFault = jest.fn<void, [Error]>();
  await checkTemporal(where, createLogger('test', 'silent'), live, onFault);
  const deadline = Date.now() + 60_000;
  while (calls() < asked && Date.now() < deadline) await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(calls()).toBe(asked);
  const messages = onFault.mock.calls.map(([{ message }]) => message);
  expect(messages).toEqual(faults.map((text) => expect.stringContaining(text)));
});
