import { randomBytes } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import type { Collection, Db } from 'mongodb';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import { exitAfter, listenForStop } from '../../src/base/process';
import { temporalAccess } from '../../src/temporal/access';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { readFloorConfig } from './config';
import { FLOOR_BANK_QUEUE, type FloorBank } from './contract';

interface Session {
  _id: string;
  token: string;
}

/** Like the sandbox bank, it stores the session. */
function createBank(db: Db): FloorBank {
  const sessions: Collection<Session> = db.collection<Session>('sessions');
  return {
    openSession: async ({ payment_id: _id }) => {
      const token = randomBytes(32).toString('base64url');
      await sessions.insertOne({ _id, token });
      return { session_url: `https://bank.example/session/${token}` };
    },
  };
}

async function main(): Promise<void> {
  const log = createLogger('floor-bank', 'warn');
  const stopBy = listenForStop(log);
  const config = readFloorConfig();
  await installRuntime(log, true);
  const mongo = await connectMongo(config.MONGODB_URI, 'floor-bank');
  const access = temporalAccess(process.env);
  const connection = await connectNative(access);
  const worker = await Worker.create({
    connection,
    namespace: access.namespace,
    taskQueue: FLOOR_BANK_QUEUE,
    activities: { ...createBank(mongo.db(config.FLOOR_DB)) },
    maxConcurrentActivityTaskExecutions: 200,
    shutdownGraceTime: '1s',
  });
  stopBy(async () => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  });
  await worker.run();
  await connection.close();
  await mongo.close();
}

exitAfter(main());
