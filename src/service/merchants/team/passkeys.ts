import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { toCustomerNetwork } from '../../../base/networks';
import { leaveOutSecret } from '../../../domain/account/audit-log';
import { hasSecondFactor, type Passkey, type UserDocument } from '../../../store/users';
import type { ServiceDeps, WriteDeps } from '../../deps';
import { notifyUser } from '../mail/outbox';
import { dropPasskey, hashToken, type UserRef } from './members';
import {
  buildCreationOptions,
  buildRequestOptions,
  CHALLENGE_MS,
  parseAssertion,
  parseAttestation,
  type Site,
  verifyAssertion,
  verifyAttestation,
} from './passkey-messages';
import { hashRecoveryCode, makeRecoveryCodes } from './second-factor';
import { clearAttempts, countAttempt } from './sign-in';

export { PASSKEYS_MAX } from '../../../store/users';

const NAME_LENGTH_MAX = 50;

type PasskeyDeps = Pick<ServiceDeps, 'stores' | 'now'>;

interface Asker {
  /** Hash of the device cookie. */
  browser: string;
  /** Present if the service signed the cookie: a user has signed in with it. */
  signedDevice: string | null;
  /** Network address. */
  address: string;
}

/** @returns `minutes` to wait after too many requests of the browser or its network */
export async function askForPasskey({ stores, now }: PasskeyDeps, site: Site, asker: Asker) {
  const minutes = await countAttempt(stores.throttles, buildSubject(asker), now());
  if (minutes > 0) return { minutes };
  const options = await buildRequestOptions(site);
  await saveChallenge({ stores, now }, options.challenge, asker.browser);
  return { minutes, options };
}

/** @returns null when anything is wrong */
export async function checkPasskey(
  { stores, now }: PasskeyDeps,
  site: Site,
  { message, ...asker }: Asker & { message: string },
): Promise<{ user: UserDocument; passkey: string } | null> {
  const assertion = parseAssertion(message);
  if (assertion === null) return null;
  if (!(await useChallenge({ stores, now }, assertion.challenge, asker.browser))) return null;
  const { id } = assertion.message;
  const user = await stores.users.byPasskey(id);
  const passkey = user?.passkeys?.find(({ credential_id }) => credential_id === id);
  if (user === null || passkey === undefined) return null;
  const counter = await verifyAssertion(site, assertion, { user_id: user._id, passkey });
  if (counter === null) return null;
  const last_used_at = now().toISOString();
  if (!(await stores.users.usePasskey(user._id, passkey, { counter, last_used_at }))) return null;
  await clearAttempts(stores.throttles, buildSubject(asker));
  return { user, passkey: passkey.id };
}

/** Counts a browser in which a user has signed in by itself, so that no neighbor keeps it out. */
const buildSubject = ({ signedDevice, address }: Asker) => ({
  passkey: signedDevice ?? toCustomerNetwork(address),
});

/** The user must have proved it again. */
export async function offerPasskey(
  { stores, now }: PasskeyDeps,
  site: Site,
  { user_id, merchant, session }: { user_id: string; merchant: string; session: string },
) {
  const user = await stores.users.get(user_id);
  if (user === null) return null;
  const options = await buildCreationOptions(site, user, merchant);
  await saveChallenge({ stores, now }, options.challenge, session);
  return options;
}

interface NewPasskey {
  user_id: string;
  /** Session of the request, which goes on. */
  session: string;
  name: string;
  message: string;
}

/**
 * Adds a passkey; as the first second factor it ends the user's other sessions.
 * @returns recovery codes of the first factor, shown only once; null when it was not added
 */
export async function addPasskey(
  { mongo, stores, audit, now }: WriteDeps,
  site: Site,
  { user_id, session: keep, name, message }: NewPasskey,
): Promise<string[] | null> {
  const attestation = parseAttestation(message);
  if (attestation === null) return null;
  if (!(await useChallenge({ stores, now }, attestation.challenge, keep))) return null;
  const credential = await verifyAttestation(site, attestation);
  const user = await stores.users.get(user_id);
  if (credential === null || user === null) return null;
  const passkey: Passkey = {
    ...credential,
    id: `passkey_${randomUUID()}`,
    name: name.slice(0, NAME_LENGTH_MAX) || 'Passkey',
    created_at: now().toISOString(),
    last_used_at: null,
  };
  return await storePasskey({ mongo, stores, audit, now }, user, { passkey, keep });
}

async function storePasskey(
  { mongo, stores, audit, now }: WriteDeps,
  user: UserDocument,
  { passkey, keep }: { passkey: Passkey; keep: string },
): Promise<string[] | null> {
  const { _id, account_id } = user;
  const isFirst = !hasSecondFactor(user);
  const codes = isFirst ? makeRecoveryCodes() : [];
  const recovery_hashes = isFirst ? codes.map(hashRecoveryCode) : undefined;
  try {
    return await inTransaction(mongo, async (session) => {
      // A reset that ends this session must win.
      if ((await stores.sessions.find(keep, now(), session)) === null) return null;
      const isAdded = await stores.users.addPasskey(_id, { passkey, recovery_hashes }, session);
      if (!isAdded) return null;
      if (isFirst) await stores.sessions.endAll(_id, session, keep);
      const after = { passkey: passkey.id, name: leaveOutSecret(passkey.name) };
      const change = { account_id, livemode: null, target: _id, after };
      await audit({ act: 'passkey.added', ...change }, session);
      await notifyUser(
        { stores, now },
        user,
        { kind: 'passkey_added', name: passkey.name },
        session,
      );
      return codes;
    });
  } catch (error) {
    if (isDuplicateKey(error, 'passkey')) return null;
    throw error;
  }
}

/** Ends the user's other sessions. @returns false when there is no such passkey */
export async function removePasskey(
  { mongo, stores, audit, now }: WriteDeps,
  user: UserRef,
  { id, keep }: { id: string; keep: string },
): Promise<boolean> {
  return await inTransaction(mongo, async (session) => {
    if (!(await dropPasskey({ stores, audit, now }, user, id, session))) return false;
    await stores.sessions.endAll(user._id, session, keep);
    return true;
  });
}

/** @param browser hash of the device cookie, or id of the session */
async function saveChallenge(
  { stores, now }: PasskeyDeps,
  challenge: string,
  browser: string,
): Promise<void> {
  const expires_at = new Date(now().getTime() + CHALLENGE_MS);
  await stores.challenges.insert({ _id: hashToken(challenge), browser, expires_at });
}

/** @returns false when this browser has no such challenge */
async function useChallenge({ stores, now }: PasskeyDeps, challenge: string, browser: string) {
  return await stores.challenges.consume(hashToken(challenge), browser, now());
}
