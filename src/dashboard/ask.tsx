import { Field } from './fields';
import { Note, PageHead, PostForm } from './parts';
import type { Ask, Viewer } from './route';

/** Fields that the page that asks sets itself, or that no page may hold. */
const OWN = new Set(['csrf', 'confirmed', 'password', 'new_password']);

interface AskPageProps {
  viewer: Viewer;
  ask: Ask;
  title: string;
  /** Address that was posted to. */
  action: string;
  back: string;
  form: URLSearchParams;
  fault?: string | undefined;
}

/**
 * Asks before an act that can't be undone or shows a secret; the fields of the form go along, so
 * that it works without JavaScript.
 */
export function AskPage({ viewer, ask, title, action, back, form, fault }: AskPageProps) {
  const { question, button, password } = ask;
  const kept = [...form].filter(([name]) => !OWN.has(name));
  return (
    <>
      <PageHead title={title} />
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <section class="panel narrow">
        <p>{typeof question === 'string' ? question : question(form)}</p>
        <PostForm viewer={viewer} action={action} button={button} hidden={{ confirmed: 'yes' }}>
          {kept.map(([name, value]) => (
            <input key={`${name}=${value}`} type="hidden" name={name} value={value} />
          ))}
          {password && (
            <Field
              label="Password"
              name="password"
              type="password"
              autocomplete="current-password"
              required
              autofocus
            />
          )}
        </PostForm>
        <a href={back}>Back without doing it</a>
      </section>
    </>
  );
}
