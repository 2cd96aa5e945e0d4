import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import { createLogger } from '../../src/base/log';
import { listenForStop } from '../../src/base/process';
import { connectTemporal, temporalAccess } from '../../src/temporal/access';
import { readFloorConfig } from './config';
import { FLOOR_OPEN, FLOOR_QUEUE, FLOOR_WORKFLOW, floorWorkflowId } from './contract';

/** Serves one HTTP hop like the product's API: it starts a workflow and responds with its ID. */
function main(): void {
  const stopBy = listenForStop(createLogger('floor-front', 'warn'));
  const config = readFloorConfig();
  const temporal = connectTemporal(temporalAccess(process.env));
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.end('ready');
    request.resume().on('end', () => {
      openPayment(temporal).then(
        (id) => response.writeHead(201).end(JSON.stringify({ id })),
        (error) => response.writeHead(500).end(String(error)),
      );
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(config.FLOOR_PORT, '127.0.0.1');
  stopBy(async () => {
    server.closeAllConnections();
    await temporal.connection.close();
    process.exit(0);
  });
}

async function openPayment(temporal: Client): Promise<string> {
  const id = randomUUID();
  await temporal.workflow.executeUpdateWithStart(FLOOR_OPEN, {
    startWorkflowOperation: new WithStartWorkflowOperation(FLOOR_WORKFLOW, {
      workflowId: floorWorkflowId(id),
      taskQueue: FLOOR_QUEUE,
      args: [id],
      workflowIdConflictPolicy: 'USE_EXISTING',
    }),
  });
  return id;
}

main();
