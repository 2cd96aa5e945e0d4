import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type WorkflowClientInterceptor,
} from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';

const ADDRESS = '127.0.0.1:7233';
const NAMESPACE = 'default';

export interface TemporalAccess {
  address: string;
  namespace: string;
  tls?: ConnectionOptions['tls'];
  apiKey?: string;
  metadata?: Record<string, string>;
}

/** Names are those of Temporal's tools. */
const Variables = z
  .object({
    TEMPORAL_ADDRESS: z.string().default(ADDRESS),
    TEMPORAL_NAMESPACE: z.string().default(NAMESPACE),
    TEMPORAL_API_KEY: z.string().optional(),
    TEMPORAL_TLS: z.enum(['', 'true', 'false', '1', '0']).optional(),
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: z.string().optional(),
    TEMPORAL_TLS_CLIENT_CERT_PATH: z.string().optional(),
    TEMPORAL_TLS_CLIENT_KEY_PATH: z.string().optional(),
    TEMPORAL_TLS_SERVER_NAME: z.string().optional(),
  })
  .refine(
    (env) => isSet(env.TEMPORAL_TLS_CLIENT_CERT_PATH) === isSet(env.TEMPORAL_TLS_CLIENT_KEY_PATH),
    {
      path: ['TEMPORAL_TLS_CLIENT_CERT_PATH'],
      message: 'comes with TEMPORAL_TLS_CLIENT_KEY_PATH, or neither is set',
    },
  );

/**
 * Reads the connection; an API key or a TLS setting enables TLS. An empty variable counts as not
 * set.
 * @throws Error with the invalid variable, or the file that can't be read
 */
export function temporalAccess(
  env: NodeJS.ProcessEnv,
  defaults: Partial<Pick<TemporalAccess, 'address' | 'namespace'>> = {},
): TemporalAccess {
  const presentVariables = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => isSet(entry[1])),
  );
  const parsed = Variables.safeParse(presentVariables);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new Error(faults.join('\n  '));
  }
  const { connectionOptions, namespace } = loadClientConnectConfig({
    // A file in the user's home must not decide where payments run.
    disableFile: true,
    overrideEnvVars: presentVariables,
  });
  const { address, apiKey, metadata, tls } = connectionOptions;
  const texts = Object.entries(metadata ?? {}).map(
    ([name, value]) => [name, String(value)] as const,
  );
  return {
    address: address ?? defaults.address ?? ADDRESS,
    namespace: namespace ?? defaults.namespace ?? NAMESPACE,
    ...(tls !== undefined && tls !== null && { tls }),
    ...(typeof apiKey === 'string' && { apiKey }),
    ...(metadata !== undefined && { metadata: Object.fromEntries(texts) }),
  };
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

/** Limits a call to half a second instead of twenty if the server is unavailable. */
const ATTEMPTS_MAX = 3;

/** Time by which a timer may fire later than it was due. */
const TIMER_MS = 50;

/**
 * Connects at the first call, so that a process can start before the server. Closes only after a
 * retry that was begun: the library throws out of a timer, which ends the process, if the channel is
 * closed by then.
 * @param identity caller's name in histories; by default process id and host
 */
export function connectTemporal(
  { namespace, ...access }: TemporalAccess,
  identity?: string,
  interceptors: readonly WorkflowClientInterceptor[] = [],
): Client {
  const usual = defaultGrpcRetryOptions({ maxAttempts: ATTEMPTS_MAX });
  let closing = false;
  let lastRetryAt = 0;
  const retry = makeGrpcRetryInterceptor({
    retryableDecider: (attempt, status) => !closing && usual.retryableDecider(attempt, status),
    delayFunction: (attempt, status) => {
      const delay = usual.delayFunction(attempt, status);
      lastRetryAt = Math.max(lastRetryAt, Date.now() + delay + TIMER_MS);
      return delay;
    },
  });
  const connection = Connection.lazy({ ...access, interceptors: [retry] });
  paceLists(connection);
  const close = connection.close.bind(connection);
  connection.close = async () => {
    closing = true;
    await sleep(Math.max(lastRetryAt - Date.now(), 0));
    await close();
  };
  const workflow = [...interceptors];
  const client = { connection, namespace, interceptors: { workflow } };
  return new Client(identity === undefined ? client : { ...client, identity });
}

/** Lists and counts that a server admits in one second by default (`frontend.namespaceRPS.visibility`). */
const LISTS_PER_SECOND = 10;

/** Lets further lists and counts of the connection wait, which the server would refuse. */
function paceLists({ workflowService }: Connection): void {
  let begun: number[] = [];
  const waitUntilAdmitted = async () => {
    const now = performance.now();
    const at = Math.max(now, (begun.at(-LISTS_PER_SECOND) ?? Number.NEGATIVE_INFINITY) + 1_000);
    begun = [...begun.slice(1 - LISTS_PER_SECOND), at];
    if (at > now) await sleep(at - now);
  };
  const list = workflowService.listWorkflowExecutions.bind(workflowService);
  const count = workflowService.countWorkflowExecutions.bind(workflowService);
  Object.assign(workflowService, {
    listWorkflowExecutions: async (request: Parameters<typeof list>[0]) => {
      await waitUntilAdmitted();
      return await list(request);
    },
    countWorkflowExecutions: async (request: Parameters<typeof count>[0]) => {
      await waitUntilAdmitted();
      return await count(request);
    },
  });
}
