import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../domain/search-attributes';
import type { Logger } from '../log';
import { ConfigFault, connectFaultOf } from './fault';

type Name = keyof typeof SEARCH_ATTRIBUTES;

/** Connection of a client or of a worker, and the namespace that is meant. */
export interface Namespace {
  connection: Pick<Connection, 'workflowService' | 'operatorService' | 'withDeadline'>;
  namespace: string;
}

const CALL_MS_MAX = 5_000;
const INVALID_ARGUMENT = 3;
/** Wire numbers of Temporal's `IndexedValueType`. */
const VALUE_TYPES = { Keyword: 2, Int: 3, Bool: 5 } as const;
/** Values to ask for; that a query takes them shows that the attribute is there and of its type. */
const EXAMPLES = { Keyword: "'none'", Int: '0', Bool: 'true' } as const;

const NAMES = Object.keys(SEARCH_ATTRIBUTES).filter(isName);

function isName(name: string): name is Name {
  return name in SEARCH_ATTRIBUTES;
}

/**
 * Finds the attributes that a namespace lacks, by queries, since these are allowed to whoever may read
 * workflows, on Temporal Cloud too.
 */
export async function missingAttributes(where: Namespace): Promise<Name[]> {
  if (await canAsk(where, NAMES)) return [];
  const known = await Promise.all(NAMES.map((name) => canAsk(where, [name])));
  return NAMES.filter((_, at) => known[at] === false);
}

async function canAsk(
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

const KNOWN_MS_MAX = 60_000;
const LOOK_AGAIN_MS = 500;

/**
 * Registers the attributes that a namespace lacks, and waits until it knows them.
 * @returns those that it registered
 * @throws ConfigFault with the commands that register them, where this process may not
 */
export async function makeAttributes(where: Namespace): Promise<Name[]> {
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
    throw new ConfigFault(attributesWanted(namespace, missing), { cause: error });
  }
  const giveUpAt = Date.now() + KNOWN_MS_MAX;
  while ((await missingAttributes(where)).length > 0) {
    if (Date.now() > giveUpAt) throw new ConfigFault(attributesWanted(namespace, missing));
    await sleep(LOOK_AGAIN_MS);
  }
  return missing;
}

/** Says which attributes a namespace lacks, with the commands that register them. */
function attributesWanted(namespace: string, missing: readonly Name[]): string {
  const pairs = missing.map((name) => ({ name, type: SEARCH_ATTRIBUTES[name] }));
  const cloud = pairs.map(({ name, type }) => `--search-attribute "${name}=${type}"`).join(' ');
  const own = pairs.map(({ name, type }) => `--name ${name} --type ${type}`).join(' ');
  return [
    `The namespace ${namespace} of Temporal lacks search attributes. Register them with one of`,
    '  npm run -s cli -- migrate',
    `  temporal operator search-attribute create --namespace ${namespace} ${own}`,
    `  tcld namespace search-attributes add --namespace ${namespace} ${cloud}`,
  ].join('\n');
}

/**
 * Checks at the start of a process that Temporal takes it and has what its workflows set. A server
 * that is away is no fault: the process begins, and `/readyz` tells of it.
 * @param live whether real money moves, which a development server is not made for
 * @throws ConfigFault in words, for an operator
 */
export async function checkTemporal(where: Namespace, log: Logger, live = false): Promise<void> {
  const { connection, namespace } = where;
  try {
    await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    const missing = await missingAttributes(where);
    if (missing.length > 0) throw new ConfigFault(attributesWanted(namespace, missing));
    if (live && (await isDevelopmentServer(where))) throw new ConfigFault(DEVELOPMENT_SERVER);
  } catch (error) {
    const fault = connectFaultOf(error);
    if (fault !== undefined) throw fault;
    log.warn({ err: error }, 'Temporal does not answer yet');
  }
}

const DEVELOPMENT_SERVER =
  'Temporal is a development server, which is not made for real money: with LIVE_CONNECTORS use a ' +
  'cluster or Temporal Cloud, or set ALLOW_LIVE_DEMO=yes to try a bank out.';

/** Whether the server keeps its data in SQLite; a server that does not say is taken for a cluster. */
async function isDevelopmentServer({ connection }: Namespace): Promise<boolean> {
  try {
    const { persistenceStore } = await connection.withDeadline(Date.now() + CALL_MS_MAX, () =>
      connection.workflowService.getClusterInfo({}),
    );
    return persistenceStore === 'sqlite';
  } catch (error) {
    if (isGrpcServiceError(error)) return false;
    throw error;
  }
}
