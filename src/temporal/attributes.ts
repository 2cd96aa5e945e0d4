import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import type { Logger } from '../base/log';
import { PROGRAM } from '../base/program';
import { SEARCH_ATTRIBUTES } from '../domain/search-attributes';
import { ConfigFault, findConnectFault } from './deadline';

type Name = keyof typeof SEARCH_ATTRIBUTES;

export interface Namespace {
  connection: Pick<Connection, 'workflowService' | 'operatorService' | 'withDeadline'>;
  namespace: string;
}

const CALL_MS_MAX = 5_000;
const INVALID_ARGUMENT = 3;
/** Wire numbers of Temporal's `IndexedValueType`. */
const VALUE_TYPES = { Keyword: 2, Int: 3, Bool: 5 } as const;
/** The server accepts a query with such a value only if the attribute has this type. */
const EXAMPLES = { Keyword: "'none'", Int: '0', Bool: 'true' } as const;

const NAMES = Object.keys(SEARCH_ATTRIBUTES).filter(
  (name): name is Name => name in SEARCH_ATTRIBUTES,
);

/** Uses queries, which need only the permission to read workflows, also on Temporal Cloud. */
export async function missingAttributes(where: Namespace): Promise<Name[]> {
  if (await canQuery(where, NAMES)) return [];
  const answers = await Promise.all(NAMES.map((name) => canQuery(where, [name])));
  return NAMES.filter((_, at) => answers[at] === false);
}

async function canQuery(
  { connection, namespace }: Namespace,
  names: readonly Name[],
): Promise<boolean> {
  const query = names.map((name) => `${name} = ${EXAMPLES[SEARCH_ATTRIBUTES[name]]}`).join(' AND ');
  try {
    await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.workflowService.countWorkflowExecutions({ namespace, query }),
    );
    return true;
  } catch (error) {
    if (isGrpcServiceError(error) && Number(error.code) === INVALID_ARGUMENT) return false;
    throw error;
  }
}

const REGISTER_MS_MAX = 60_000;
const POLL_MS = 500;

/**
 * Waits until registered attributes take effect.
 * @throws ConfigFault with the commands that register them, if this process has no permission
 */
export async function registerAttributes(where: Namespace): Promise<Name[]> {
  const missing = await missingAttributes(where);
  if (missing.length === 0) return [];
  const { connection, namespace } = where;
  const searchAttributes = Object.fromEntries(
    missing.map((name) => [name, VALUE_TYPES[SEARCH_ATTRIBUTES[name]]]),
  );
  try {
    await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
    );
  } catch (error) {
    throw new ConfigFault(missingAttributesText(namespace, missing), { cause: error });
  }
  const giveUpAt = Date.now() + REGISTER_MS_MAX;
  while ((await missingAttributes(where)).length > 0) {
    if (Date.now() > giveUpAt) throw new ConfigFault(missingAttributesText(namespace, missing));
    await sleep(POLL_MS);
  }
  return missing;
}

function missingAttributesText(namespace: string, missing: readonly Name[]): string {
  const pairs = missing.map((name) => ({ name, type: SEARCH_ATTRIBUTES[name] }));
  const cloud = pairs.map(({ name, type }) => `--search-attribute "${name}=${type}"`).join(' ');
  const selfHosted = pairs.map(({ name, type }) => `--name ${name} --type ${type}`).join(' ');
  return [
    `The namespace ${namespace} of Temporal lacks search attributes. Register them with one of`,
    `  ${PROGRAM.cli} migrate`,
    `  temporal operator search-attribute create --namespace ${namespace} ${selfHosted}`,
    `  tcld namespace search-attributes add --namespace ${namespace} ${cloud}`,
  ].join('\n');
}

/**
 * Checks that Temporal accepts this process and has the search attributes. An unavailable server is
 * no fault: the process starts, and `/readyz` reports it.
 * @param live whether real money moves, which a development server must not handle
 * @param onFault takes the fault of a server that responds only later; by default the process ends
 * @throws ConfigFault with a message for the operator
 */
export async function checkTemporal(
  where: Namespace,
  log: Logger,
  live = false,
  onFault = (err: Error): void => {
    log.fatal({ err }, 'Temporal cannot be used');
    process.exit(1);
  },
): Promise<void> {
  const { connection, namespace } = where;
  try {
    await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    const missing = await missingAttributes(where);
    if (missing.length > 0) throw new ConfigFault(missingAttributesText(namespace, missing));
    if (live) await assertCluster(where);
  } catch (error) {
    const fault = findConnectFault(error);
    if (fault !== undefined) throw fault;
    log.warn({ err: error }, 'Temporal does not answer yet');
    if (live) checkWhenAvailable(where).catch(onFault);
  }
}

const RECHECK_MS = 500;

async function checkWhenAvailable(where: Namespace): Promise<void> {
  for (;;) {
    await sleep(RECHECK_MS, undefined, { ref: false });
    try {
      return await assertCluster(where);
    } catch (error) {
      if (error instanceof ConfigFault) throw error;
    }
  }
}

const DEVELOPMENT_SERVER =
  'Temporal is a development server, which must not handle real money: with LIVE_CONNECTORS use a ' +
  'cluster or Temporal Cloud, or set ALLOW_LIVE_DEMO=yes to try a bank.';
/** gRPC codes after which the server may respond later. */
const UNAVAILABLE_CODES: readonly number[] = [4, 8, 14];

/** Refuses SQLite; a server that does not report its store is a cluster. */
async function assertCluster({ connection }: Namespace): Promise<void> {
  try {
    const { persistenceStore } = await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.workflowService.getClusterInfo({}),
    );
    if (persistenceStore === 'sqlite') throw new ConfigFault(DEVELOPMENT_SERVER);
  } catch (error) {
    if (!isGrpcServiceError(error) || UNAVAILABLE_CODES.includes(Number(error.code))) throw error;
  }
}
