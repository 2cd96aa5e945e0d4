import type { Owner, ServiceDeps } from './deps';

const LATEST_EVENTS = 100;

export interface SetupProgress {
  hasKey: boolean;
  isKeyUsed: boolean;
  hasPayment: boolean;
  endpointUrl: string | undefined;
  hasDelivery: boolean;
  hasSecondFactor: boolean;
  hasTeam: boolean;
}

export async function readSetupProgress(
  { stores }: Pick<ServiceDeps, 'stores'>,
  owner: Owner,
  user_id: string,
): Promise<SetupProgress> {
  const { account_id, livemode } = owner;
  const [keys, payments, endpoint, events, members] = await Promise.all([
    stores.keys.forAccount(account_id),
    stores.payments.list({ ...owner, limit: 1 }),
    stores.endpoints.get(account_id, livemode),
    stores.events.list({ ...owner, limit: LATEST_EVENTS }),
    stores.users.forAccount(account_id),
  ]);
  const ownKeys = keys.filter((key) => key.livemode === livemode && key.revoked_at === null);
  return {
    hasKey: ownKeys.length > 0,
    isKeyUsed: ownKeys.some(({ last_used_at }) => last_used_at !== null),
    hasPayment: payments.length > 0,
    endpointUrl: endpoint?.url,
    hasDelivery: events.some(({ delivery }) => delivery.status === 'delivered'),
    hasSecondFactor: members.some(({ _id, totp }) => _id === user_id && totp !== null),
    hasTeam: members.length > 1,
  };
}
