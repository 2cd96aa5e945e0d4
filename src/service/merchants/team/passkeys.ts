import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { hasSecondFactor, type Passkey, type UserDocument } from '../../../store/users';
import type { ServiceDeps, WriteDeps } from '../../access';
import { notifyUser } from '../mail/outbox';
import { dropPasskey, hashToken, type UserRef } from './members';
import { hashRecoveryCode, makeRecoveryCodes } from './second-factor';
import { clearAttempts, countAttempt, toSignInNetwork } from './sign-in';

export { PASSKEYS_MAX } from '../../../store/users';

import { isIP } from 'node:net';
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { z } from 'zod';

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
  // Any passkey of the browser may sign in.
  const request = { rpID: site.rpId, userVerification, timeout: CHALLENGE_MS } as const;
  const options = await generateAuthenticationOptions(request);
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
  passkey: signedDevice ?? toSignInNetwork(address),
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
      const after = { passkey: passkey.id, name: passkey.name };
      const change = { account_id, livemode: null, target: _id, after };
      await audit({ act: 'passkey.added', ...change }, session);
      const subject = { kind: 'passkey_added', name: passkey.name } as const;
      await notifyUser({ stores, now }, user, subject, session);
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

/** @see docs/dashboard.md#passkeys */
const CHALLENGE_MS = 5 * 60_000;
/** COSE numbers of EdDSA, ES256 and RS256. */
const ALGORITHMS = [-8, -7, -257];
/** A passkey that verifies its user (finger, face or PIN) is two factors. */
const userVerification = 'required';

/** Browsers bind passkeys to it. */
export interface Site {
  rpId: string;
  origin: string;
}

/** @returns null where browsers allow no passkeys */
export function findSite(publicUrl: string): Site | null {
  const { protocol, hostname: rpId, origin } = new URL(publicUrl);
  const isDomain = isIP(rpId.replace(/^\[|\]$/g, '')) === 0;
  const isSecure = protocol === 'https:' || rpId === 'localhost';
  return isDomain && isSecure ? { rpId, origin } : null;
}

/** The browser finds such a passkey without an e-mail address. */
export async function buildCreationOptions(
  { rpId: rpID }: Site,
  { _id, email, passkeys = [] }: Pick<UserDocument, '_id' | 'email' | 'passkeys'>,
  merchant: string,
) {
  return await generateRegistrationOptions({
    ...{ rpName: 'Payments dashboard', rpID, timeout: CHALLENGE_MS },
    userID: toBytes(Buffer.from(_id).toString('base64url')),
    // One address may have users of several merchants.
    userName: `${email} (${merchant})`,
    authenticatorSelection: { residentKey: 'required', userVerification },
    excludeCredentials: passkeys.map(({ credential_id: id }) => ({ id })),
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

const Base64Url = z.string().regex(/^[\w-]+$/);

const Assertion = z.object({
  id: Base64Url,
  clientDataJSON: Base64Url,
  authenticatorData: Base64Url,
  signature: Base64Url,
  userHandle: Base64Url,
});

const Attestation = z.object({
  id: Base64Url,
  clientDataJSON: Base64Url,
  attestationObject: Base64Url,
});

const ClientData = z.object({ challenge: z.string() });

/** @returns null when malformed */
export const parseAssertion = (text: string) => parseAnswer(Assertion, text);
export const parseAttestation = (text: string) => parseAnswer(Attestation, text);

function parseAnswer<S extends z.ZodType<{ clientDataJSON: string }>>(schema: S, text: string) {
  const message = parseJson(schema, text);
  if (message === null) return null;
  const clientData = parseJson(ClientData, toText(message.clientDataJSON));
  return clientData && { ...clientData, message };
}

function parseJson<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** @returns the passkey's counter; null when the signature is wrong */
export async function verifyAssertion(
  { rpId: expectedRPID, origin: expectedOrigin }: Site,
  { challenge, message }: NonNullable<ReturnType<typeof parseAssertion>>,
  { user_id, passkey }: { user_id: string; passkey: Passkey },
): Promise<number | null> {
  const { id, userHandle, ...response } = message;
  if (toText(userHandle) !== user_id) return null;
  const { credential_id, public_key, counter } = passkey;
  const credential = { id: credential_id, publicKey: toBytes(public_key), counter };
  const verification = await verifyAuthenticationResponse({
    response: { ...buildCredential(id), response },
    ...{ expectedChallenge: challenge, expectedOrigin, expectedRPID, credential },
  }).catch(toNull);
  return verification?.verified ? verification.authenticationInfo.newCounter : null;
}

/** @returns null when it is wrong */
export async function verifyAttestation(
  { rpId: expectedRPID, origin: expectedOrigin }: Site,
  { challenge, message }: NonNullable<ReturnType<typeof parseAttestation>>,
): Promise<Pick<Passkey, 'credential_id' | 'public_key' | 'counter'> | null> {
  const { id, ...response } = message;
  const verification = await verifyRegistrationResponse({
    response: { ...buildCredential(id), response },
    ...{ expectedChallenge: challenge, expectedOrigin, expectedRPID },
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(toNull);
  const credential = verification?.registrationInfo?.credential;
  if (credential === undefined) return null;
  const public_key = Buffer.from(credential.publicKey).toString('base64url');
  return { credential_id: credential.id, public_key, counter: credential.counter };
}

/** The library throws the fault of a message. */
const toNull = () => null;

function buildCredential(id: string) {
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} } as const;
}

const toText = (base64Url: string) => Buffer.from(base64Url, 'base64url').toString();
const toBytes = (base64Url: string) => Uint8Array.from(Buffer.from(base64Url, 'base64url'));
