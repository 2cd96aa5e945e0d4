import { temporal as proto } from '@temporalio/proto';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { useHook } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';

const { VERSIONING_BEHAVIOR_AUTO_UPGRADE, VERSIONING_BEHAVIOR_PINNED } =
  proto.api.enums.v1.VersioningBehavior;

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
 * As `temporal worker deployment set-current-version` does it, once the server has met the worker;
 * its queues hear of it a little later.
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
    const told = await deliveryOf(id, 'payment.awaiting_customer');
    const begun = await versionOf(paymentWorkflowId(id));
    return begun.buildId === buildId && told.buildId === buildId && id;
  });
}

/** Version of a workflow, which it has at the end of its first task. */
async function versionOf(workflowId: string) {
  return await eventually(`a version of ${workflowId}`, async () => {
    const handle = service.temporal.workflow.getHandle(workflowId);
    const described = await handle.describe().catch(() => undefined);
    const { versioningInfo } = described?.raw.workflowExecutionInfo ?? {};
    const { behavior, deploymentVersion } = versioningInfo ?? {};
    const buildId = deploymentVersion?.buildId;
    return buildId !== undefined && { behavior, buildId };
  });
}

async function pay(): Promise<string> {
  const paid = await eventually('a payment to be made by the current version', async () => {
    const made = await shop.post('/v1/payments', idealPayment());
    return made.body.status === 'awaiting_customer' && made;
  });
  return paid.body.id;
}

async function settle(id: string): Promise<void> {
  const path = `/v1/sandbox/payments/${id}/simulate`;
  await shop.post(path, { event: 'settled' });
  // The document is written within the task at whose end the version is.
  await service.temporal.workflow.getHandle(paymentWorkflowId(id)).result();
}

/** Version of the delivery of a payment's event. */
async function deliveryOf(resource_id: string, type: string) {
  const found = { account_id: shop.account_id, livemode: false, resource_id, limit: 10 };
  const event = (await service.stores.events.list(found)).find((each) => each.type === type);
  return await versionOf(webhookWorkflowId(event?._id ?? ''));
}

const lifecycle = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_AUTO_UPGRADE, buildId });
const delivery = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_PINNED, buildId });

test('a new version takes over what waits, deliveries end where they began, and a rollback takes it back', async () => {
  await start('a');
  const first = await makeCurrent('a');
  expect(await versionOf(paymentWorkflowId(first))).toEqual(lifecycle('a'));

  await start('b');
  expect(await versionOf(paymentWorkflowId(await pay()))).toEqual(lifecycle('a'));

  const second = await makeCurrent('b');
  await settle(first);
  expect(await versionOf(paymentWorkflowId(first))).toEqual(lifecycle('b'));
  expect(await deliveryOf(first, 'payment.awaiting_customer')).toEqual(delivery('a'));
  expect(await deliveryOf(first, 'payment.settled')).toEqual(delivery('b'));

  await makeCurrent('a');
  await settle(second);
  expect(await versionOf(paymentWorkflowId(second))).toEqual(lifecycle('a'));
  expect(await deliveryOf(second, 'payment.settled')).toEqual(delivery('a'));
});
