import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, MongoServerError } from 'mongodb';
import { type Child, startChild, waitUntilUp } from '../../stack/child-process';
import { freePort, LOOPBACK } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { startWatchdog, type Watchdog } from '../stack/watchdog';
import { withClient } from './database';
import { eventually } from './http';
import { provisionQuietly } from './programs';

const NODES = 3;
const UP_MS_MAX = 90_000;
const ELECTED_MS_MAX = 90_000;
const NAME = 'elections';
/** Seconds for which a primary that stepped down is no candidate. */
const STEP_DOWN_SECONDS = 3;
const NOT_PRIMARY = 10_107;

interface Node {
  port: number;
  running: { child: Child; watchdog: Watchdog } | undefined;
}

export type ReplicaSet = Awaited<ReturnType<typeof startReplicaSet>>;

/** Starts three nodes that elect a primary among them, small, and able to fail on demand. */
export async function startReplicaSet() {
  const path = await provisionQuietly(mongod);
  const folder = mkdtempSync(join(tmpdir(), 'replica-set-'));
  const nodes: Node[] = [];
  const stop = async () => {
    await Promise.all(nodes.map(({ running }) => running?.child.stop()));
    rmSync(folder, { recursive: true, force: true });
    for (const { running } of nodes) running?.watchdog.dismiss();
  };
  try {
    while (nodes.length < NODES) nodes.push({ port: await freePort(), running: undefined });
    await Promise.all(nodes.map((node) => startNode(path, folder, node)));
    await initiate(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  let failureCount = 0;
  return {
    uri: `mongodb://${nodes.map(getHost).join()}/?replicaSet=${NAME}`,
    elections: async () => {
      const { term } = await runAdmin(await waitForPrimary(nodes), { replSetGetStatus: 1 });
      return Number(term);
    },
    /** Makes the primary give its place up at once, whatever its followers lack. */
    stepDown: async () => {
      const command = { replSetStepDown: STEP_DOWN_SECONDS, secondaryCatchUpPeriodSecs: 0 };
      // An election of its own may have come first.
      await eventually('the primary to step down', async () => {
        const primary = await waitForPrimary(nodes);
        return await runAdmin(primary, { ...command, force: true }).catch((error: unknown) => {
          if (error instanceof MongoServerError && error.code === NOT_PRIMARY) return undefined;
          throw error;
        });
      });
    },
    /** Kills the primary, as a machine that loses its power does. */
    killPrimary: async (): Promise<Node> => {
      const node = await waitForPrimary(nodes);
      node.running?.child.kill();
      await node.running?.child.exited;
      node.running?.watchdog.dismiss();
      node.running = undefined;
      return node;
    },
    restart: (node: Node) => startNode(path, folder, node),
    /** Fails the next commands of the clients under test, on whichever node they go to. */
    failNext: async (times: number, data: Document) => {
      failureCount = await setFailPoint(nodes, {
        mode: { times },
        data: { ...data, appName: 'records' },
      });
    },
    /** Keeps followers from taking writes over, so that no majority has them; or lets them. */
    holdBack: async (isHeld: boolean) => {
      const mode = isHeld ? 'alwaysOn' : 'off';
      await runOnAll(nodes, { configureFailPoint: 'stopReplProducer', mode });
    },
    /** Ends the failures; says how many commands have met them. */
    failNoMore: async () => (await setFailPoint(nodes, { mode: 'off' })) - failureCount,
    stop,
  };
}

const getHost = ({ port }: Node) => `${LOOPBACK}:${port}`;

async function startNode(command: string, folder: string, node: Node): Promise<void> {
  const { port } = node;
  const dbPath = join(folder, String(port));
  const logFile = join(folder, `${port}.log`);
  mkdirSync(dbPath, { recursive: true });
  const child = await startChild({
    name: 'MongoDB',
    command,
    args: [
      ...['--dbpath', dbPath, '--port', String(port), '--bind_ip', LOOPBACK],
      ...['--replSet', NAME, '--wiredTigerCacheSizeGB', '0.25', '--oplogSize', '64'],
      ...['--nounixsocket', '--setParameter', 'enableTestCommands=1'],
      ...['--setParameter', 'transactionLifetimeLimitSeconds=3'],
      ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
    ],
    logFile,
    graceMs: 0,
  });
  node.running = { child, watchdog: startWatchdog([child.pid], folder) };
  await waitUntilUp(child, logFile, UP_MS_MAX, () => runAdmin(node, { ping: 1 }));
}

async function initiate(nodes: readonly Node[]): Promise<void> {
  const members = nodes.map((node, _id) => ({ _id, host: getHost(node) }));
  const settings = { electionTimeoutMillis: 2_000, heartbeatIntervalMillis: 500 };
  const [first] = nodes;
  if (first === undefined) throw new Error('The set has no node.');
  await runAdmin(first, { replSetInitiate: { _id: NAME, members, settings } });
  await waitForPrimary(nodes);
}

async function waitForPrimary(nodes: readonly Node[]): Promise<Node> {
  return await eventually('a primary', () => currentPrimary(nodes), ELECTED_MS_MAX);
}

async function currentPrimary(nodes: readonly Node[]): Promise<Node | undefined> {
  for (const node of nodes) {
    if (node.running === undefined) continue;
    const hello: Document | null = await runAdmin(node, { hello: 1 }).catch(() => null);
    if (hello?.['isWritablePrimary'] === true) return node;
  }
  return undefined;
}

/** Sets the fail point of each node; says how often it was met before. */
async function setFailPoint(nodes: readonly Node[], setting: Document): Promise<number> {
  const answers = await runOnAll(nodes, { configureFailPoint: 'failCommand', ...setting });
  return answers.reduce((sum, answer) => sum + Number(answer['count']), 0);
}

function runOnAll(nodes: readonly Node[], command: Document): Promise<Document[]> {
  return Promise.all(nodes.map((node) => runAdmin(node, command)));
}

function runAdmin(node: Node, command: Document): Promise<Document> {
  const uri = `mongodb://${getHost(node)}/?directConnection=true`;
  return withClient(uri, (client) => client.db('admin').command(command));
}
