import type { RouterContext } from '@koa/router';
import { checkPasskey, findSite } from '../../service/merchants/team/passkeys';
import type { UserDocument } from '../../service/merchants/team/sessions';
import { type Dashboard, noteVisitor } from './context';
import { field } from './form';

export const PASSKEY_SIGN_IN_PATH = '/dashboard/sign-in/passkey';
export const WRONG_PASSKEY = 'This passkey was not accepted. Try again, or use another way.';
export const NO_PASSKEYS =
  'Passkeys need the dashboard at a domain name with https, not at an IP address.';

interface PasskeyButtonProps {
  label: string;
  options?: object;
}

export function PasskeyButton({ label, options }: PasskeyButtonProps) {
  return (
    <>
      <input type="hidden" name="passkey" />
      <p class="fault" role="alert" data-passkey-fault hidden />
      <button
        type="button"
        class={options === undefined ? 'plain' : undefined}
        data-passkey={options === undefined ? 'get' : JSON.stringify(options)}
        hidden
      >
        {label}
      </button>
    </>
  );
}

interface PasskeySignInProps {
  publicUrl: string;
  next: string | undefined;
}

export function PasskeySignIn({ publicUrl, next }: PasskeySignInProps) {
  if (findSite(publicUrl) === null) return <p class="muted">{NO_PASSKEYS}</p>;
  return (
    <form method="post" action={PASSKEY_SIGN_IN_PATH} class="form">
      {next !== undefined && <input type="hidden" name="next" value={next} />}
      <PasskeyButton label="Use a passkey" />
    </form>
  );
}

export function hasPasskeys({ passkeys = [] }: Pick<UserDocument, 'passkeys'>, publicUrl: string) {
  return passkeys.length > 0 && findSite(publicUrl) !== null;
}

export function isByPasskey(form: URLSearchParams): boolean {
  return field(form, 'passkey') !== '';
}

/** @param user the only one whose passkeys are accepted */
export async function readPasskey(
  ctx: RouterContext,
  dashboard: Dashboard,
  form: URLSearchParams,
  user?: UserDocument,
) {
  const site = findSite(dashboard.publicUrl);
  const browser = dashboard.device.hash(ctx);
  if (site === null || browser === null) return null;
  const address = dashboard.clientAddress(ctx.req);
  const asker = { browser, address, signedDevice: dashboard.device.signedHash(ctx) };
  const message = field(form, 'passkey');
  const proof = await checkPasskey(dashboard, site, { ...asker, message });
  const isAccepted = user === undefined || user._id === proof?.user._id;
  noteVisitor(ctx, { proof: 'passkey', outcome: isAccepted && proof !== null ? 'right' : 'wrong' });
  return isAccepted ? proof : null;
}
