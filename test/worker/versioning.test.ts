import { temporal as proto } from '@temporalio/proto';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { buildPayment } from '../support/factories';
import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useAccount, useService } from '../support/service';

const { VERSIONING_BEHAVIOR_AUTO_UPGRADE, VERSIONING_BEHAVIOR_PINNED } =
  proto.api.enums.v1.VersioningBehavior;

// A product of its own: its workers are of versions that the tests start and stop.
const service = useService({ worker: false });
const shop = useAccount(service);
const hook = useHook(service);

beforeAll(() => hook.register(shop));
beforeEach(() => {
  hook.answer.status = 500;
});

const start = (buildId: string) =>
  service.startWorkers({ deploymentName: service.connector, buildId });

/**
 * Makes a version current as `temporal worker deployment set-current-version` does, once the server
 * knows its worker; its queues learn of it a little later.
 * @returns a payment that this version has begun
 */
async function makeCurrent(buildId: string): Promise<string> {
  const { workflowService } = service.temporal;
  const request = { namespace: 'default', deploymentName: service.connector, buildId };
  const isSet = () =>
    workflowService.setWorkerDeploymentCurrentVersion({ ...request, identity: 'test' }).then(
      () => true,
      () => false,
    );
  await eventually(`${buildId} to be known`, isSet);
  return await eventually(`${buildId} to be current`, async () => {
    const id = await pay();
    const delivered = await readDeliveryVersion(id, 'payment.awaiting_customer');
    const begun = await readVersion(paymentWorkflowId(id));
    return begun.buildId === buildId && delivered.buildId === buildId && id;
  });
}

/** Reads the version of a workflow, which it has at the end of its first task. */
async function readVersion(workflowId: string) {
  return await eventually(`a version of ${workflowId}`, async () => {
    const handle = service.temporal.workflow.getHandle(workflowId);
    const described = await handle.describe().catch(() => undefined);
    const { versioningInfo } = described?.raw.workflowExecutionInfo ?? {};
    const { behavior, deploymentVersion } = versioningInfo ?? {};
    const buildId = deploymentVersion?.buildId;
    return buildId !== undefined && { behavior, buildId };
  });
}

const pay = async (): Promise<string> => (await buildPayment(shop)).id;

async function settle(id: string): Promise<void> {
  const path = `/v1/sandbox/payments/${id}/simulate`;
  await shop.post(path, { event: 'settled' });
  // The document is written within the task at whose end the version is.
  await service.temporal.workflow.getHandle(paymentWorkflowId(id)).result();
}

/** Reads the version of the delivery of a payment's event. */
async function readDeliveryVersion(resource_id: string, type: string) {
  const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 10 };
  const event = (await service.stores.events.list(filter)).find((each) => each.type === type);
  return await readVersion(webhookWorkflowId(event?._id ?? ''));
}

const lifecycle = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_AUTO_UPGRADE, buildId });
const delivery = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_PINNED, buildId });

test('a new version continues waiting resources, a delivery ends under its first version, and a rollback works the same way', async () => {
  await start('a');
  const first = await makeCurrent('a');
  expect(await readVersion(paymentWorkflowId(first))).toEqual(lifecycle('a'));

  await start('b');
  expect(await readVersion(paymentWorkflowId(await pay()))).toEqual(lifecycle('a'));

  const second = await makeCurrent('b');
  await settle(first);
  expect(await readVersion(paymentWorkflowId(first))).toEqual(lifecycle('b'));
  expect(await readDeliveryVersion(first, 'payment.awaiting_customer')).toEqual(delivery('a'));
  expect(await readDeliveryVersion(first, 'payment.settled')).toEqual(delivery('b'));

  await makeCurrent('a');
  await settle(second);
  expect(await readVersion(paymentWorkflowId(second))).toEqual(lifecycle('a'));
  expect(await readDeliveryVersion(second, 'payment.settled')).toEqual(delivery('a'));
});
