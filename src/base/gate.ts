/** Limits parallel calls; the others wait in order of arrival, urgent ones before them. */
export type Gate = <T>(work: () => Promise<T>, isUrgent?: boolean) => Promise<T>;

/**
 * @param reserved of `atOnce`, for the next urgent calls
 * @param rest pause after a call for which others wait, as a multiple of its time
 */
export function createGate(atOnce: number, { reserved = 0, rest = 0 } = {}): Gate {
  const urgent: (() => void)[] = [];
  const others: (() => void)[] = [];
  let free = atOnce;
  const admitNext = () => {
    if (free === 0) return;
    const next = urgent.shift() ?? (free > reserved ? others.shift() : undefined);
    if (next === undefined) return;
    free -= 1;
    next();
  };
  const enter = (isUrgent: boolean) =>
    new Promise<void>((resolve) => {
      (isUrgent ? urgent : others).push(resolve);
      admitNext();
    });
  const leave = () => {
    free += 1;
    admitNext();
  };
  return async (work, isUrgent = false) => {
    await enter(isUrgent);
    const began = performance.now();
    try {
      return await work();
    } finally {
      const isAwaited = urgent.length + others.length > 0;
      if (rest > 0 && isAwaited) setTimeout(leave, rest * (performance.now() - began));
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
      const entry = gates.get(name) ?? { gate: createGate(atOnce, { rest }), calls: 0 };
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
