import { passOn, startProxy } from '../../connectors/conformance/proxy';

/** Way on which a question to the node gets lost: there, or back with the answer. */
type LostAt = 'question' | 'answer';

export type NodeProxy = Awaited<ReturnType<typeof startNodeProxy>>;

/** Starts a proxy in front of a node, which loses questions when a test says so. */
export async function startNodeProxy(node: string) {
  let loss: { method: string; at: LostAt; happened: () => void } | undefined;
  const { url, stop } = await startProxy(0, async (request) => {
    const { method } = JSON.parse(request.body.toString());
    const lost = loss?.method === method ? loss : undefined;
    const answer = lost?.at === 'question' ? undefined : await passOn(node, request);
    if (lost === undefined) return answer;
    lost.happened();
    // What is lost leaves the client waiting.
    return await new Promise<never>(() => {});
  });
  return {
    ...{ url, stop },
    /** Loses questions of a method from now on; resolves once one is lost. */
    lose: (method: string, at: LostAt) =>
      new Promise<void>((happened) => {
        loss = { method, at, happened };
      }),
    /** Lets all through again. */
    open: () => {
      loss = undefined;
    },
  };
}
