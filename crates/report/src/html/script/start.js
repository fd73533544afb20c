// Adds to a page that is whole without it: read-outs, zoom, series switched off.
const make = (name, parent, set) => parent.appendChild(
  Object.assign(document.createElement(name), set));
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Says to a screen reader what the eye sees under the cross-hair.
const heard = make("div", document.body, { className: "heard" });
heard.setAttribute("role", "status");
const say = (text) => { heard.textContent = text; };
