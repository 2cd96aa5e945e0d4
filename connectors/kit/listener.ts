import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import getRawBody from 'raw-body';
import { ZodError } from 'zod';
import { closeServer, createHttpServer } from '../../src/api/server';
import type { Logger } from '../../src/base/log';
import { NOTHING_ALLOWED } from '../../src/pages/security';
import type { KitConfig } from './config';
import {
  type ConnectorDefinition,
  type Settings,
  type Tools,
  type Webhook,
  WebhookRefused,
} from './definition';
import { createPage, isForPage } from './page/page';
import type { StepLog } from './page/steps';
import type { DeliverReports } from './reports';

const BODY_BYTES_MAX = 65_536;
const AT_ONCE_MAX = 50;
const RETRY_AFTER_SECONDS = 5;

const WEBHOOK_TIMEOUTS = { headersTimeout: 5_000, requestTimeout: 10_000 };
const GRACE_MS = 5_000;

interface ListenerDeps<S extends Settings> {
  tools: Tools<S>;
  deliver: DeliverReports;
  log: Pick<Logger, 'warn' | 'error'>;
}

interface Answer {
  status: number;
  message: string;
}

/** Listens for webhooks, and in the sandbox serves the page, for which the port must be set. */
export async function startListener<S extends Settings>(
  definition: Pick<ConnectorDefinition<S>, 'webhook'>,
  { HOST, CONNECTOR_PORT, name }: Pick<KitConfig<S>, 'HOST' | 'CONNECTOR_PORT' | 'name'>,
  { steps, ...deps }: ListenerDeps<S> & { steps: StepLog | undefined },
) {
  const webhook =
    definition.webhook && (steps?.watchWebhook(definition.webhook) ?? definition.webhook);
  if (webhook === undefined && steps === undefined) return undefined;
  let running = 0;
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    if (webhook === undefined || request.url?.split('?', 1)[0] !== webhook.path) {
      return { status: 404, message: 'There is nothing here.' };
    }
    if (request.method !== 'POST') return { status: 405, message: 'Webhooks are posted.' };
    if (running >= AT_ONCE_MAX) return { status: 503, message: 'Too many webhooks at once.' };
    running += 1;
    try {
      return await receive({ ...deps, webhook }, request);
    } finally {
      running -= 1;
    }
  };
  const respond = (response: ServerResponse, { status, message }: Answer): void => {
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      ...NOTHING_ALLOWED,
      ...(status === 503 ? { 'Retry-After': String(RETRY_AFTER_SECONDS) } : {}),
      // The rest of a refused body is not read.
      ...([404, 405, 413].includes(status) ? { Connection: 'close' } : {}),
    };
    response.writeHead(status, headers).end(JSON.stringify({ message }));
  };
  const page = steps && createPage(name, steps);
  const server = createHttpServer((request, response) => {
    if (page !== undefined && isForPage(request)) return page(request, response);
    answer(request).then(
      (result) => respond(response, result),
      () => response.destroy(),
    );
  }, WEBHOOK_TIMEOUTS);
  server.listen(CONNECTOR_PORT ?? 0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST}:${port}${webhook?.path ?? ''}`,
    close: () => closeServer(server, GRACE_MS),
  };
}

/** Answers 2xx only after every report was delivered. */
async function receive<S extends Settings>(
  { webhook, tools, deliver, log }: ListenerDeps<S> & { webhook: Webhook<S> },
  request: IncomingMessage,
): Promise<Answer> {
  try {
    const body = await readBody(request, webhook.bodyBytesMax ?? BODY_BYTES_MAX);
    const { headers } = request;
    const json = () => {
      try {
        return JSON.parse(body.toString('utf8'));
      } catch {
        throw new WebhookRefused(400, 'The body is not JSON.');
      }
    };
    await deliver(await webhook.read({ headers, body, json }, tools));
    return { status: 200, message: 'received' };
  } catch (error) {
    if (!(error instanceof WebhookRefused || error instanceof ZodError)) {
      log.error({ err: error }, 'a webhook was not delivered, the bank repeats it');
      return { status: 503, message: 'Not received: please repeat it.' };
    }
    const answer =
      error instanceof WebhookRefused
        ? { status: error.status, message: error.message }
        : {
            status: 400,
            message: `Not readable: ${error.issues.map(({ path }) => path.join('.') || 'the body').join(', ')}.`,
          };
    log.warn({ status: answer.status, code: answer.message }, 'a webhook was refused');
    return answer;
  }
}

/** @throws WebhookRefused if the body is too large, or breaks off */
async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit, length: request.headers['content-length'] });
  } catch (error) {
    const isTooLarge =
      error instanceof Error && 'type' in error && error.type === 'entity.too.large';
    if (isTooLarge) throw new WebhookRefused(413, `The body is larger than ${limit} bytes.`);
    throw new WebhookRefused(400, 'The body is incomplete.');
  }
}
