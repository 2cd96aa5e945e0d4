import {
  type Brand,
  DISPLAY_NAME_LENGTH_MAX,
  LOGO_LIMITS,
  parseAccent,
  parseDisplayName,
} from '../../domain/account/brand';
import { getBrand, presentBrand, setBrand, setLogo } from '../../service/brand/brand';
import { parseLogo } from '../../service/brand/logo';
import { Field } from '../frame/fields';
import { field, redirect } from '../frame/form';
import { Facts, PageHead, Panel, PostForm } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { BrandPreview } from './brand-preview';

const PATH = '/brand';
const TITLE = 'Brand';
const LOGO = 'logo';

/** More than a logo may have, so that the fault is shown at its field. */
const FORM_BYTES_MAX = 8 * 1_024 * 1_024;

const changeRoute = { method: 'post', act: 'brand.change', title: TITLE } as const;

export const BRAND_ROUTES: readonly Route[] = [
  viewRoute(PATH, TITLE, (call, deps) => show(call, deps)),
  { ...changeRoute, path: PATH, handle: saveBrand },
  {
    ...changeRoute,
    path: `${PATH}/logo`,
    upload: { field: LOGO, bytesMax: FORM_BYTES_MAX },
    handle: saveLogo,
  },
  { ...changeRoute, path: `${PATH}/logo/remove`, handle: removeLogo },
];

interface Refused {
  display_name?: string;
  accent?: string;
  faults: Partial<Record<'display_name' | 'accent' | typeof LOGO, string>>;
}

async function show(call: Call, deps: PageDeps, refused?: Refused): Promise<Answer> {
  const brand = await getBrand(deps, call.scope);
  const page = <BrandPage call={call} brand={brand} refused={refused} />;
  return { page, status: refused === undefined ? 200 : 400 };
}

interface BrandProps {
  call: Call;
  brand: Brand;
  refused: Refused | undefined;
}

function BrandPage({ call, brand, refused }: BrandProps) {
  const { account, env, livemode } = call.viewer;
  const shown = presentBrand({ name: account.name, brand: { [env]: brand } }, livemode);
  return (
    <>
      <PageHead title={TITLE} />
      <p class="muted">
        {`What your customers see on the payment pages of the ${env} environment. The other ` +
          'environment has a brand of its own.'}
      </p>
      <Panel title="Preview">
        <BrandPreview brand={shown} />
        <p class="hint">
          Buttons have your color as it is. Links and icons get as much darker or lighter as they
          must to be read.
        </p>
      </Panel>
      {call.may('brand.change') ? (
        <>
          <TextsPanel {...{ call, brand, refused }} />
          <LogoPanel {...{ call, brand, refused }} />
        </>
      ) : (
        <Panel>
          <Facts
            rows={[
              ['Display name', shown.name],
              ['Accent color', shown.accent ?? 'ours'],
              ['Logo', shown.logo === undefined ? 'none' : 'as in the preview'],
            ]}
          />
        </Panel>
      )}
    </>
  );
}

function TextsPanel({ call, brand, refused }: BrandProps) {
  return (
    <Panel title="Name and color">
      <PostForm call={call} path={PATH} button="Save brand">
        <Field
          label="Display name"
          name="display_name"
          value={refused?.display_name ?? brand.display_name ?? ''}
          placeholder={call.viewer.account.name}
          maxLength={2 * DISPLAY_NAME_LENGTH_MAX}
          hint="Empty: the name of your account."
          fault={refused?.faults.display_name}
        />
        <Field
          label="Accent color"
          name="accent"
          value={refused?.accent ?? brand.accent ?? ''}
          placeholder="#0a7c5a"
          maxLength={20}
          hint="Empty: ours."
          fault={refused?.faults.accent}
        />
      </PostForm>
    </Panel>
  );
}

function LogoPanel({ call, brand, refused }: BrandProps) {
  return (
    <Panel title="Logo">
      <PostForm call={call} path={`${PATH}/logo`} button="Upload logo" isUpload busy="Uploading…">
        <Field
          label="Image"
          name={LOGO}
          type="file"
          accept="image/png,image/jpeg,image/webp"
          required
          hint={
            `PNG, JPEG or WebP, up to ${LOGO_LIMITS.bytes / 1_024} KiB and ` +
            `${LOGO_LIMITS.side.toLocaleString('en')} pixels a side, without metadata. It is shown ` +
            'on white.'
          }
          fault={refused?.faults.logo}
        />
      </PostForm>
      {brand.logo !== undefined && (
        <PostForm call={call} path={`${PATH}/logo/remove`} button="Remove logo" tone="danger" />
      )}
    </Panel>
  );
}

async function saveBrand(call: Call, deps: PageDeps): Promise<Answer> {
  const written = {
    display_name: field(call.form, 'display_name'),
    accent: field(call.form, 'accent'),
  };
  const display_name = parseDisplayName(written.display_name);
  const accent = parseAccent(written.accent);
  if (display_name.ok && accent.ok) {
    await setBrand(deps, call.scope, { display_name: display_name.value, accent: accent.value });
    return redirect(
      call,
      PATH,
      'good',
      'The brand is saved. Pages that are open keep the old one.',
    );
  }
  const faults = {
    ...(!display_name.ok && { display_name: display_name.fault }),
    ...(!accent.ok && { accent: accent.fault }),
  };
  return await show(call, deps, { ...written, faults });
}

async function saveLogo(call: Call, deps: PageDeps): Promise<Answer> {
  if (call.file === null) {
    return await show(call, deps, { faults: { logo: 'Choose a file first.' } });
  }
  const parsed = parseLogo(call.file);
  if (!parsed.ok) return await show(call, deps, { faults: { logo: parsed.fault } });
  await setLogo(deps, call.scope, parsed.logo);
  return redirect(call, PATH, 'good', 'The logo is saved.');
}

async function removeLogo(call: Call, deps: PageDeps): Promise<Answer> {
  await setLogo(deps, call.scope, undefined);
  return redirect(call, PATH, 'good', 'The logo is removed.');
}
