import {
  type Brand,
  DISPLAY_NAME_LENGTH_MAX,
  LOGO_LIMITS,
  parseAccent,
  parseDisplayName,
} from '../../domain/merchants/brand';
import { derivePalette, type SchemeName } from '../../pages/accent';
import { logoPath } from '../../pages/assets';
import {
  getBrand,
  parseLogo,
  presentBrand,
  type ShownBrand,
  setBrand,
  setLogo,
} from '../../service/merchants/brand/brand';
import { Field, ProofFields } from '../frame/fields';
import { field } from '../frame/form';
import { Facts, PageHead, Panel, PostForm, useCall } from '../frame/parts';
import {
  type Answer,
  type Call,
  type PageDeps,
  postRoute,
  type Route,
  viewRoute,
} from '../frame/route';

const PATH = '/brand';
const TITLE = 'Brand';
const LOGO = 'logo';
const IMAGE = 'Image';
const SAVE = 'Save brand';
const UPLOAD = 'Upload logo';
const REMOVE = 'Remove logo';

const CONFIRMATION = {
  question: 'Your customers see it on the live payment pages from now on.',
  proof: 'step_up',
  liveOnly: true,
} as const;

/** More than a logo may have, so that the fault is shown at its field. */
const FORM_BYTES_MAX = 8 * 1_024 * 1_024;

export const BRAND_ROUTES: readonly Route[] = [
  viewRoute(PATH, TITLE, (call, deps) => show(call, deps)),
  postRoute(PATH, 'brand.change', {
    title: TITLE,
    confirmation: {
      ...CONFIRMATION,
      button: SAVE,
      refuse: async (call, deps) => {
        const { refused } = readTexts(call);
        return refused && (await show(call, deps, refused));
      },
    },
    handle: async (call, deps) => {
      const { texts, refused } = readTexts(call);
      if (texts === undefined) return await show(call, deps, refused);
      await setBrand(deps, call.scope, texts);
      return { go: PATH, good: 'The brand is saved. Pages that are open keep the old one.' };
    },
  }),
  postRoute(`${PATH}/logo`, 'brand.change', {
    title: TITLE,
    upload: { field: LOGO, label: IMAGE, bytesMax: FORM_BYTES_MAX },
    confirmation: {
      ...CONFIRMATION,
      button: UPLOAD,
      refuse: async (call, deps) => {
        const parsed = call.file && parseLogo(call.file);
        if (parsed === null || parsed.ok) return undefined;
        return await show(call, deps, { faults: { logo: parsed.fault } });
      },
    },
    handle: async (call, deps) => {
      if (call.file === null) {
        return await show(call, deps, { faults: { logo: 'Choose a file first.' } });
      }
      const parsed = parseLogo(call.file);
      if (!parsed.ok) return await show(call, deps, { faults: { logo: parsed.fault } });
      await setLogo(deps, call.scope, parsed.logo);
      return { go: PATH, good: 'The logo is saved.' };
    },
  }),
  postRoute(`${PATH}/logo/remove`, 'brand.change', {
    title: TITLE,
    confirmation: { ...CONFIRMATION, button: REMOVE },
    handle: async (call, deps) => {
      await setLogo(deps, call.scope, undefined);
      return { go: PATH, good: 'The logo is removed.' };
    },
  }),
];

function readTexts({ form }: Call) {
  const written = { display_name: field(form, 'display_name'), accent: field(form, 'accent') };
  const display_name = parseDisplayName(written.display_name);
  const accent = parseAccent(written.accent);
  if (display_name.ok && accent.ok) {
    return { texts: { display_name: display_name.value, accent: accent.value } };
  }
  const faults = {
    ...(!display_name.ok && { display_name: display_name.fault }),
    ...(!accent.ok && { accent: accent.fault }),
  };
  return { refused: { ...written, faults } };
}

interface Refused {
  display_name?: string;
  accent?: string;
  faults: Partial<Record<'display_name' | 'accent' | typeof LOGO, string>>;
}

async function show(call: Call, deps: PageDeps, refused?: Refused): Promise<Answer> {
  const brand = await getBrand(deps, call.scope);
  const { account, env, livemode } = call.viewer;
  const shown = presentBrand({ name: account.name, brand: { [env]: brand } }, livemode);
  const page = (
    <>
      <PageHead title={TITLE} />
      <p class="muted">
        {`What your customers see on the payment pages of the ${env} environment. The other ` +
          'environment has a brand of its own.'}
      </p>
      <Panel title="Preview">
        {/* Drawn on a page of each scheme, since no style may be inline. */}
        <div class="previews">
          {(['light', 'dark'] as const).map((scheme) => (
            <div key={scheme}>
              <Card brand={shown} scheme={scheme} />
              <p class="muted small">{CARDS[scheme].name}</p>
            </div>
          ))}
        </div>
        <p class="hint">
          Buttons have your color as it is. Links and icons get as much darker or lighter as they
          must to be read.
        </p>
      </Panel>
      {call.may('brand.change') ? (
        <>
          <TextsPanel {...{ brand, refused }} />
          <LogoPanel {...{ brand, refused }} />
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
  return { page, status: refused === undefined ? 200 : 400 };
}

interface BrandProps {
  brand: Brand;
  refused: Refused | undefined;
}

function TextsPanel({ brand, refused }: BrandProps) {
  const call = useCall();
  return (
    <Panel title="Name and color">
      <PostForm path={PATH} button={SAVE}>
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

function LogoPanel({ brand, refused }: BrandProps) {
  const { user, livemode } = useCall().viewer;
  return (
    <Panel title="Logo">
      <PostForm
        {...{ path: `${PATH}/logo`, button: UPLOAD, busy: 'Uploading…' }}
        // A page that asks for the password afterwards has lost the file.
        hidden={livemode ? { confirmed: 'yes' } : {}}
        isUpload
      >
        <Field
          label={IMAGE}
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
        {livemode && <ProofFields user={user} proof="step_up" />}
      </PostForm>
      {brand.logo !== undefined && (
        <PostForm path={`${PATH}/logo/remove`} button={REMOVE} tone="danger" />
      )}
    </Panel>
  );
}

const CARDS = {
  light: { name: 'On a light page', card: '#ffffff', ink: '#10172a' },
  dark: { name: 'On a dark page', card: '#141a28', ink: '#edf1fa' },
} as const satisfies Record<SchemeName, { name: string; card: string; ink: string }>;

/** Equals the accent in `styles.ts`. */
const OWN_ACCENT = '#1d4ed8';

const LOGO_SIDE = 40;
const NAME_LENGTH_MAX = 20;

function Card({ brand, scheme }: { brand: ShownBrand; scheme: SchemeName }) {
  const { name, card, ink } = CARDS[scheme];
  const { fill, onFill, edge, accent, tint } = derivePalette(brand.accent ?? OWN_ACCENT, scheme);
  const [letter = '·'] = [...brand.name.trim().toUpperCase()];
  const letters = [...brand.name];
  return (
    <svg
      viewBox="0 0 300 176"
      width="300"
      height="176"
      role="img"
      aria-label={`${name}: ${brand.name}`}
      font-size="15"
      text-anchor="middle"
    >
      <rect x="0.5" y="0.5" width="299" height="175" rx="14" fill={card} stroke="#7b8598" />
      {brand.logo === undefined ? (
        <>
          <rect x="20" y="20" width={LOGO_SIDE} height={LOGO_SIDE} rx="12" fill={tint} />
          <text x="40" y="46" fill={accent} font-size="18" font-weight="700">
            {letter}
          </text>
        </>
      ) : (
        <>
          {scheme === 'dark' && <rect x="16" y="16" width="88" height="48" rx="8" fill="#ffffff" />}
          <image
            href={logoPath(brand.logo.hash)}
            x="20"
            y="20"
            width="80"
            height={LOGO_SIDE}
            preserveAspectRatio={scheme === 'dark' ? 'xMidYMid' : 'xMinYMid'}
          />
        </>
      )}
      <text x={brand.logo === undefined ? 72 : 116} y="46" fill={ink} text-anchor="start">
        {letters.length <= NAME_LENGTH_MAX
          ? brand.name
          : `${letters.slice(0, NAME_LENGTH_MAX - 1).join('')}…`}
      </text>
      <rect x="20" y="84" width="260" height="44" rx="12" fill={fill} stroke={edge} />
      <text x="150" y="111" fill={onFill} font-weight="600">
        Continue
      </text>
      <text x="150" y="156" fill={accent} text-decoration="underline">
        Link
      </text>
    </svg>
  );
}
