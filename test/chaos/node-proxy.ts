import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

/** Way on which a question to the node gets lost: there, or back with the answer. */
type LostAt = 'question' | 'answer';

interface Loss {
  method: string;
  at: LostAt;
  /** Called when it has happened. */
  happened: () => void;
}

const Question = z.object({ method: z.string() });

/** Proxy in front of a node, which loses questions when a test says so. */
export async function startNodeProxy(node: string) {
  let loss: Loss | undefined;
  const answerTo = async (question: string): Promise<string | undefined> => {
    const { method } = Question.parse(JSON.parse(question));
    const lost = loss?.method === method ? loss : undefined;
    if (lost?.at === 'question') return void lost.happened();
    const headers = { 'Content-Type': 'application/json' };
    const answered = await fetch(node, { method: 'POST', headers, body: question });
    const answer = await answered.text();
    return lost === undefined ? answer : void lost.happened();
  };
  const server = createServer((request, response) => {
    text(request)
      .then(answerTo)
      .then(
        // What is lost leaves who asked waiting.
        (answer) => answer !== undefined && response.end(answer),
        // The node is away, or who asked is gone.
        () => response.destroy(),
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    /** Loses questions of a method from now on; resolves once one is lost. */
    lose: (method: string, at: LostAt) =>
      new Promise<void>((happened) => {
        loss = { method, at, happened };
      }),
    /** Lets all through again. */
    open: () => {
      loss = undefined;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

export type NodeProxy = Awaited<ReturnType<typeof startNodeProxy>>;
