import { ClientSession, Collection } from 'mongodb';

/** Death of the connector at a step. */
export class Killed extends Error {
  override readonly name = 'Killed';
}

/** Steps at which a process may die: before or after a call of the MongoDB driver with this text. */
const STEPS = {
  'address derived': ['before insertOne addresses', ''],
  'block read': ['before updateOne cursor', ''],
  'block stored': ['after withTransaction', ''],
  'branch left': ['after withTransaction', ''],
  'deposit to be reported': ['after updateOne deposits', '"pending_report":{'],
  'deposit reported': ['before updateOne deposits', '"$inc":{"reports"'],
  'settlement signed': ['before insertOne settlements', ''],
  'settlement stored': ['after withTransaction', ''],
  'settlement broadcast': ['before updateOne settlements', '"$set":{"broadcast"'],
  'fee raised': ['after updateOne settlements', '"$push":{"attempts"'],
  'settlement to be reported': ['after updateOne settlements', '"pending_report":{'],
  'settlement reported': ['before updateOne settlements', '"$inc":{"reports"'],
} as const;

export type Step = keyof typeof STEPS;

/** Lets calls of the driver throw: what a killed process has not done by then never happens. */
export function createKiller() {
  let step: Step | undefined;
  const dieIf = (point: string, text = ''): void => {
    if (step === undefined || STEPS[step][0] !== point || !text.includes(STEPS[step][1])) return;
    const message = `killed at: ${step}`;
    step = undefined;
    throw new Killed(message);
  };
  const { insertOne, updateOne } = Collection.prototype;
  const { withTransaction } = ClientSession.prototype;
  const spies = [
    jest.spyOn(Collection.prototype, 'insertOne').mockImplementation(async function (
      this: Collection,
      ...args
    ) {
      dieIf(`before insertOne ${this.collectionName}`);
      return await insertOne.apply(this, args);
    }),
    jest.spyOn(Collection.prototype, 'updateOne').mockImplementation(async function (
      this: Collection,
      ...args
    ) {
      const text = JSON.stringify(args[1]);
      dieIf(`before updateOne ${this.collectionName}`, text);
      const result = await updateOne.apply(this, args);
      dieIf(`after updateOne ${this.collectionName}`, text);
      return result;
    }),
    jest.spyOn(ClientSession.prototype, 'withTransaction').mockImplementation(async function (
      this: ClientSession,
      ...args
    ) {
      const result = await withTransaction.apply(this, args);
      dieIf('after withTransaction');
      return result;
    }),
  ];
  return {
    /** Lets the connector die when it next comes to a step. */
    killAt: (next: Step | undefined) => {
      step = next;
    },
    restore: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}
