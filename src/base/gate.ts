/** Limits parallel calls; the others wait in order of arrival, urgent ones before them. */
export type Gate = <T>(work: () => Promise<T>, isUrgent?: boolean) => Promise<T>;

/** @param rest pause after a call for which others wait, as a multiple of its time */
export function createGate(atOnce: number, rest = 0): Gate {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  const enter = async (isUrgent: boolean): Promise<void> => {
    if (free > 0) free -= 1;
    else {
      await new Promise<void>((resolve) =>
        isUrgent ? waiting.unshift(resolve) : waiting.push(resolve),
      );
    }
  };
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (work, isUrgent = false) => {
    await enter(isUrgent);
    const began = performance.now();
    try {
      return await work();
    } finally {
      if (rest > 0 && waiting.length > 0) setTimeout(leave, rest * (performance.now() - began));
      else leave();
    }
  };
}

export interface NamedGates {
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
  isFull(name: string): boolean;
}

export function createNamedGates({
  atOnce,
  waitingMax = Number.POSITIVE_INFINITY,
  rest = 0,
}: {
  atOnce: number;
  waitingMax?: number;
  rest?: number;
}): NamedGates {
  const gates = new Map<string, { gate: Gate; calls: number }>();
  return {
    run: async (name, work) => {
      const entry = gates.get(name) ?? { gate: createGate(atOnce, rest), calls: 0 };
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
