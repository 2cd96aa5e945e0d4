import { ClientSession, Collection } from 'mongodb';

/** Death of the connector at a step. */
export class Killed extends Error {
  override readonly name = 'Killed';
}

/** Steps at which a process may die: before or after a call of the MongoDB driver with this text. */
const STEPS = {
  'block read': ['before updateOne cursor', ''],
  'block stored': ['after withTransaction', ''],
  'branch left': ['after withTransaction', ''],
  'deposit to be reported': ['after updateOne deposits', '"pending_report":{'],
  'deposit reported': ['before updateOne deposits', '"$inc":{"reports"'],
  'settlement signed': ['before insertOne settlements', ''],
  'settlement stored': ['after withTransaction', ''],
  'settlement broadcast': ['before updateOne settlements', '"$set":{"broadcast"'],
  'fee raised': ['after updateOne settlements', '"$push":{"attempts"'],
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
  /** Lets it die before or after each call of a method. */
  const watch = (prototype: object, method: string) => {
    const call: (...args: unknown[]) => Promise<unknown> = Reflect.get(prototype, method);
    const watched = async function (this: unknown, ...args: unknown[]) {
      const name = this instanceof Collection ? `${method} ${this.collectionName}` : method;
      const text = method === 'updateOne' ? JSON.stringify(args[1]) : '';
      dieIf(`before ${name}`, text);
      const result = await call.apply(this, args);
      dieIf(`after ${name}`, text);
      return result;
    };
    return jest.spyOn(Object(prototype), method).mockImplementation(watched as () => never);
  };
  const spies = [
    watch(Collection.prototype, 'insertOne'),
    watch(Collection.prototype, 'updateOne'),
    watch(ClientSession.prototype, 'withTransaction'),
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
