import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { csrfToken } from '../../src/dashboard/frame/context';
import type { Role } from '../../src/domain/merchants/dashboard-role';
import { createEncrypter } from '../../src/encryption/encrypter';
import { hashPassword } from '../../src/encryption/password';
import { insertSession } from '../../src/service/merchants/team/sessions';
import type { Stores } from '../../src/store';
import { totpOwner, type UserDocument } from '../../src/store/users';
import { eventually } from './eventually';
import { useFixture } from './fixture';
import type { Service } from './service';

export const PASSWORD = 'correct horse battery staple';

let passwordHash: Promise<string> | undefined;

/** Team member of an account, with `PASSWORD`. */
export async function openUser(
  stores: Pick<Stores, 'users'>,
  account_id: string,
  role: Role = 'owner',
): Promise<UserDocument> {
  passwordHash ??= hashPassword(PASSWORD);
  const user: UserDocument = {
    ...{ _id: `user_${randomUUID()}`, account_id, role },
    email: `${role}-${randomUUID().slice(0, 8)}@example.com`,
    password_hash: await passwordHash,
    ...{ totp: null, totp_offered: null, recovery_hashes: [] },
    ...{ created_at: new Date().toISOString(), signed_in_at: null },
  };
  await stores.users.insert(user);
  return user;
}

export async function addSecondFactor(
  service: Pick<Service, 'keys' | 'collection'>,
  { _id }: Pick<UserDocument, '_id'>,
) {
  const secret = new Secret({ size: 20 }).base32;
  const ciphertext = await createEncrypter(service.keys.seal).encrypt(secret, totpOwner(_id));
  await service
    .collection<UserDocument>('users')
    .updateOne({ _id }, { $set: { totp: { ciphertext, step: 0 } } });
  return { code: () => new TOTP({ secret: Secret.fromBase32(secret) }).generate() };
}

export type PageResponse = Awaited<ReturnType<typeof fetchPage>>;

export async function fetchPage(
  url: string,
  method: 'GET' | 'POST',
  path: string,
  { headers = {}, form }: { headers?: Record<string, string>; form?: Record<string, string> } = {},
) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers,
    redirect: 'manual',
    ...(form && { body: new URLSearchParams(form) }),
  });
  const set = response.headers.getSetCookie().find((each) => each.startsWith('dashboard='));
  return {
    status: response.status,
    location: response.headers.get('location'),
    /** Value of the session's cookie that it set; undefined when it set none. */
    cookie: set?.split(';')[0]?.slice('dashboard='.length),
    headers: response.headers,
    html: await response.text(),
  };
}

/** Text of a page as a browser shows it, without its tags and its frame. */
export const readText = (html: string) =>
  html
    .slice(html.indexOf('<main'))
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');

export type Visitor = ReturnType<typeof visitor>;

export function visitor(url: string, secret: string) {
  const headers = { Cookie: `dashboard=${secret}` };
  return {
    secret,
    csrf: csrfToken(secret),
    get: (path: string) => fetchPage(url, 'GET', path, { headers }),
    post: (path: string, form: Record<string, string> = {}) =>
      fetchPage(url, 'POST', path, { headers, form: { csrf: csrfToken(secret), ...form } }),
    /** Sends it again with what a page that asks once more wants. */
    confirm: (path: string, more: Record<string, string> = {}) => {
      const form = { csrf: csrfToken(secret), confirmed: 'yes', password: PASSWORD, ...more };
      return fetchPage(url, 'POST', path, { headers, form });
    },
  };
}

/** Sends a form again until it leads to a page about what it made; its key lets it act once. */
export function sendUntilMade(send: () => Promise<PageResponse>, page: RegExp): Promise<string> {
  return eventually(`a page like ${page}`, async () => {
    const { location } = await send();
    return location !== null && page.test(location) && location;
  });
}

export async function openVisitor(
  { url, stores }: { url: string; stores: Pick<Stores, 'sessions'> },
  user: UserDocument,
): Promise<Visitor> {
  return visitor(url, await insertSession(stores.sessions, user, 'whole', new Date()));
}

/** Browser of a signed-in owner of an account, for one file's tests. */
export function useVisitor(
  service: { url: string; stores: Pick<Stores, 'sessions' | 'users'> },
  account: { account_id: string },
  role?: Role,
): Visitor {
  return useFixture(async () =>
    openVisitor(service, await openUser(service.stores, account.account_id, role)),
  );
}
