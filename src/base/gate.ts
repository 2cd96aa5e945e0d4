/** Limits parallel calls; the others wait in order of arrival. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

export function createGate(atOnce: number): Gate {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  const enter = async (): Promise<void> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (work) => {
    await enter();
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

/** A gate for each name, such as an account, so that none takes the part of another. */
export interface NamedGates {
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Whether so many calls of the name wait that another one must not. */
  isFull(name: string): boolean;
}

export function createNamedGates({
  atOnce,
  waitingMax = Number.POSITIVE_INFINITY,
}: {
  atOnce: number;
  waitingMax?: number;
}): NamedGates {
  const gates = new Map<string, { gate: Gate; calls: number }>();
  return {
    run: async (name, work) => {
      const entry = gates.get(name) ?? { gate: createGate(atOnce), calls: 0 };
      gates.set(name, entry);
      entry.calls += 1;
      try {
        return await entry.gate(work);
      } finally {
        entry.calls -= 1;
        if (entry.calls === 0) gates.delete(name);
      }
    },
    isFull: (name) => (gates.get(name)?.calls ?? 0) >= atOnce + waitingMax,
  };
}
