import { ClientSession, Collection } from 'mongodb';

/** Death of the connector at a step. */
export class Killed extends Error {
  override readonly name = 'Killed';
}

/** A call of the MongoDB driver, and whether the connector dies before or after it. */
type Point = readonly [
  when: 'before' | 'after',
  method: Method,
  collection?: string,
  text?: string,
];
type Method = 'insertOne' | 'updateOne' | 'withTransaction';

/** Steps between which a process may die. Each is next to one call, which `text` tells from others. */
const STEPS = {
  'address derived': ['before', 'insertOne', 'addresses'],
  'block read': ['before', 'updateOne', 'cursor'],
  'block kept': ['after', 'withTransaction'],
  'branch left': ['after', 'withTransaction'],
  'deposit to be told': ['after', 'updateOne', 'deposits', '"telling":{'],
  'deposit told': ['before', 'updateOne', 'deposits', '"$inc":{"reports"'],
  'settlement signed': ['before', 'insertOne', 'settlements'],
  'settlement kept': ['after', 'withTransaction'],
  'settlement broadcast': ['before', 'updateOne', 'settlements', '"$set":{"broadcast"'],
  'fee raised': ['after', 'updateOne', 'settlements', '"$push":{"attempts"'],
  'settlement to be told': ['after', 'updateOne', 'settlements', '"telling":{'],
  'settlement told': ['before', 'updateOne', 'settlements', '"$inc":{"reports"'],
} as const satisfies Record<string, Point>;

export type Step = keyof typeof STEPS;

/** Lets calls of the driver throw: what a killed process has not done by then never happens. */
export function createKiller() {
  let step: Step | undefined;
  const dieIf = (...[when, method, collection, text = '']: Point): void => {
    if (step === undefined) return;
    const point: Point = STEPS[step];
    if (point[0] !== when || point[1] !== method || point[2] !== collection) return;
    if (!text.includes(point[3] ?? '')) return;
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
      dieIf('before', 'insertOne', this.collectionName);
      return await insertOne.apply(this, args);
    }),
    jest.spyOn(Collection.prototype, 'updateOne').mockImplementation(async function (
      this: Collection,
      ...args
    ) {
      const text = JSON.stringify(args[1]);
      dieIf('before', 'updateOne', this.collectionName, text);
      const result = await updateOne.apply(this, args);
      dieIf('after', 'updateOne', this.collectionName, text);
      return result;
    }),
    jest.spyOn(ClientSession.prototype, 'withTransaction').mockImplementation(async function (
      this: ClientSession,
      ...args
    ) {
      const result = await withTransaction.apply(this, args);
      dieIf('after', 'withTransaction');
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
