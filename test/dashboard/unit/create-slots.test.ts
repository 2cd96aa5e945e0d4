import { createInSlot } from '../../../src/dashboard/frame/form';
import { createConnectors } from '../../../src/routing';
import { createSlots } from '../../../src/service/create-slots';
import { gate } from '../../support/gate';

const connectors = createConnectors('sandbox', 'evm=eth_ethereum,acme=visa');
const none = Object({ readCached: async () => new Map() });
const stores = { routingRules: none, connectorPauses: none };
const caller = { account_id: 'a', livemode: true };
const request = {
  ...{ caller, idempotencyKey: 'k', canonical: '{}', requestId: 'r' },
  parseBody: () => ({}),
};

test('creates of the dashboard and of the API share the slots of the account', async () => {
  const takeSlot = createSlots(1);
  const create = jest.fn(async () => 'created');
  const createHere = () => createInSlot({ takeSlot, connectors, stores }, request, {}, create);
  const { opened, release } = gate();
  const byApi = takeSlot({ ...caller, connector: undefined }, () => opened);
  await expect(createHere()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  expect(create).not.toHaveBeenCalled();
  release();
  await byApi;
  expect(await createHere()).toBe('created');
});

test('a crypto settlement takes a slot of the connector that serves its asset', async () => {
  const takeSlot = jest.fn((_holder: unknown, work: () => Promise<string>) => work());
  const fields = { asset: 'ETH', network: 'ethereum' };
  const deps = { takeSlot: Object(takeSlot), connectors, stores };
  await createInSlot(deps, request, fields, async () => 'created');
  expect(takeSlot).toHaveBeenCalledWith({ ...caller, connector: 'evm' }, expect.anything());
});
