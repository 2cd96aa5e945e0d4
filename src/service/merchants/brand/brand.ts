import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import type { Brand } from '../../../domain/account/brand';
import { omitUndefined } from '../../../domain/defined';
import { toEnv } from '../../../domain/environment';
import type { AccountDocument } from '../../../store/accounts';
import type { Owner, WriteDeps } from '../../deps';
import type { Logo } from './logo';

export interface ShownBrand extends Omit<Brand, 'display_name'> {
  name: string;
}

export function presentBrand(
  account: Pick<AccountDocument, 'name' | 'brand'> | null,
  livemode: boolean,
): ShownBrand {
  const { display_name, ...brand } = account?.brand?.[toEnv(livemode)] ?? {};
  return { ...brand, name: display_name ?? account?.name ?? '' };
}

export async function getBrand(
  { stores }: Pick<WriteDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<Brand> {
  return (await stores.accounts.get(account_id))?.brand?.[toEnv(livemode)] ?? {};
}

/** An undefined value is removed. */
export async function setBrand(
  deps: WriteDeps,
  owner: Owner,
  { display_name, accent }: { display_name: string | undefined; accent: string | undefined },
): Promise<void> {
  await changeBrand(deps, owner, ({ logo }) => omitUndefined({ display_name, accent, logo }));
}

/** Leaves a replaced logo for a day, since open or cached pages name it. */
export async function setLogo(
  deps: WriteDeps,
  owner: Owner,
  logo: Logo | undefined,
): Promise<void> {
  await changeBrand(deps, owner, async ({ logo: earlier, ...brand }, session) => {
    if (earlier !== undefined && earlier.hash !== logo?.hash) {
      await deps.stores.logos.replace(owner, earlier.hash, deps.now(), session);
    }
    if (logo === undefined) return brand;
    await deps.stores.logos.store(owner, logo, session);
    const { hash, width, height } = logo;
    return { ...brand, logo: { hash, width, height } };
  });
}

/** Changes a brand and writes its line, both or neither. */
async function changeBrand(
  { mongo, stores, audit }: WriteDeps,
  { account_id, livemode }: Owner,
  change: (brand: Brand, session: ClientSession) => Brand | Promise<Brand>,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    const env = toEnv(livemode);
    const before = (await stores.accounts.get(account_id, session))?.brand?.[env] ?? {};
    const after = await change(before, session);
    await stores.accounts.setBrand(account_id, env, after, session);
    const line = { act: 'brand.changed', account_id, livemode, target: null } as const;
    await audit({ ...line, before: toFacts(before), after: toFacts(after) }, session);
  });
}

function toFacts({ display_name, accent, logo }: Brand) {
  return { display_name: display_name ?? null, accent: accent ?? null, logo: logo?.hash ?? null };
}
