import type { Receiver } from './receiver';

/** A resource that the load generator takes from its creation to its end. */
export interface Flow {
  create(): Promise<string>;
  /** Transitions whose webhooks arrive before the first report, or by the end. */
  webhooks: { before: readonly string[]; after: readonly string[] };
  /** Transitions that the bank reports, in order. */
  reported: readonly string[];
  report(id: string, transition: string): Promise<void>;
  /** Lists the workflows of a resource, from the IDs of the events that the receiver got. */
  workflowIds(id: string, eventIds: readonly string[]): string[];
}

/** Result of a run; times in ms. */
export interface Run {
  createMs: number[];
  /** Times from what causes a webhook to its arrival. */
  webhookMs: number[];
  workflowIds: string[][];
  ids: string[];
}

export interface Load {
  count: number;
  /** Number in flight at any moment; as one ends, the next begins. */
  concurrency: number;
  signal: AbortSignal;
}

/** @throws the error of the first resource that fails; the others are not waited for */
export async function runLoad(flow: Flow, receiver: Receiver, load: Load): Promise<Run> {
  const run: Run = { createMs: [], webhookMs: [], workflowIds: [], ids: [] };
  await inLoops(load, () => runOne(flow, receiver, run));
  return run;
}

/** Does one thing `count` times, `concurrency` at a time. @throws its first error */
export async function inLoops(
  { count, concurrency, signal }: Load,
  one: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const loop = async (): Promise<void> => {
    for (; next < count && !signal.aborted; ) {
      next += 1;
      await one(next - 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, loop));
  signal.throwIfAborted();
}

/** Takes one resource to its end; each report follows the webhook of the one before it. */
async function runOne(flow: Flow, receiver: Receiver, run: Run): Promise<void> {
  const began = performance.now();
  const id = await flow.create();
  run.createMs.push(performance.now() - began);
  for (const transition of flow.webhooks.before) await receiver.arrival(id, transition);
  for (const transition of flow.reported) {
    const report = () => flow.report(id, transition);
    run.webhookMs.push(await timeWebhook(receiver, { id, transition }, report));
  }
  for (const transition of flow.webhooks.after) await receiver.arrival(id, transition);
  run.ids.push(id);
  run.workflowIds.push(flow.workflowIds(id, receiver.take(id)));
}

export async function timeWebhook(
  receiver: Receiver,
  { id, transition, endpoints }: { id: string; transition: string; endpoints?: number },
  cause: () => Promise<void>,
): Promise<number> {
  const began = performance.now();
  const [at] = await Promise.all([receiver.arrival(id, transition, endpoints), cause()]);
  return at - began;
}
