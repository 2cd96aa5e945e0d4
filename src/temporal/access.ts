import type { ConnectionOptions } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';

const ADDRESS = '127.0.0.1:7233';
const NAMESPACE = 'default';

/** Address of a Temporal server, and the proof of who calls. */
export interface TemporalAccess {
  /** host:port */
  address: string;
  namespace: string;
  tls?: ConnectionOptions['tls'];
  apiKey?: string;
  /** Headers of every call. */
  metadata?: Record<string, string>;
}

/** Variables of a connection, under the names that Temporal's own tools read. */
export const TEMPORAL_VARIABLES = {
  TEMPORAL_ADDRESS: z.string().default(ADDRESS),
  TEMPORAL_NAMESPACE: z.string().default(NAMESPACE),
  TEMPORAL_API_KEY: z.string().optional(),
  TEMPORAL_TLS: z.enum(['', 'true', 'false', '1', '0']).optional(),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: z.string().optional(),
  TEMPORAL_TLS_CLIENT_CERT_PATH: z.string().optional(),
  TEMPORAL_TLS_CLIENT_KEY_PATH: z.string().optional(),
  TEMPORAL_TLS_SERVER_NAME: z.string().optional(),
};

const Variables = z
  .object(TEMPORAL_VARIABLES)
  .refine(
    (env) => isSet(env.TEMPORAL_TLS_CLIENT_CERT_PATH) === isSet(env.TEMPORAL_TLS_CLIENT_KEY_PATH),
    {
      path: ['TEMPORAL_TLS_CLIENT_CERT_PATH'],
      message: 'comes with TEMPORAL_TLS_CLIENT_KEY_PATH, or neither is set',
    },
  );

/**
 * Reads how Temporal is reached from the environment alone, as Temporal's SDKs do: an API key or a
 * setting of TLS turns TLS on. An empty variable counts as not set.
 * @param usual the address and namespace where the environment has none
 * @throws Error naming the variable at fault, or the file that can't be read
 */
export function temporalAccess(
  env: NodeJS.ProcessEnv,
  usual: Partial<Pick<TemporalAccess, 'address' | 'namespace'>> = {},
): TemporalAccess {
  const set = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => isSet(entry[1])),
  );
  const parsed = Variables.safeParse(set);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new Error(faults.join('\n  '));
  }
  const { connectionOptions, namespace } = loadClientConnectConfig({
    // A file of the user's home would decide where money goes.
    disableFile: true,
    overrideEnvVars: set,
  });
  const { address, apiKey, metadata, tls } = connectionOptions;
  return {
    address: address ?? usual.address ?? ADDRESS,
    namespace: namespace ?? usual.namespace ?? NAMESPACE,
    ...(tls !== undefined && tls !== null && { tls }),
    ...(typeof apiKey === 'string' && { apiKey }),
    ...(metadata !== undefined && { metadata: Object.fromEntries(textsOf(metadata)) }),
  };
}

function textsOf(metadata: object): [string, string][] {
  return Object.entries(metadata).map(([name, value]) => [name, String(value)]);
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}
