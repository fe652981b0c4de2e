"use strict";
// ---- plots: a cursor with the values under the pointer; a cursor at the time shown
const tip = document.createElement("div");
tip.className = "tip";
document.body.append(tip);
const NS = "http://www.w3.org/2000/svg";
const plots = [...document.querySelectorAll("svg.plot")].map((svg) => {
  const at = svg.dataset.at.split(" ").map(Number); // left, right, top, bottom [px], then x and y of these edges
  const [l, r, t, b, x0, x1, y0, y1] = at;
  const lines = [...svg.querySelectorAll("[data-name]")].map((line) => ({
    name: line.dataset.name,
    points: (line.getAttribute("points") || "").trim().split(/\s+/).map((p) => p.split(",").map(Number)),
  }));
  const cursor = (kind) => { // a line with a triangle on top of it, in the color of its side
    const group = document.createElementNS(NS, "path");
    group.setAttribute("class", "cursor " + kind);
    group.setAttribute("d", `M0 ${t}V${b}M-4 ${t - 7}H4L0 ${t}Z`); group.style.display = "none";
    svg.append(group);
    return group;
  };
  return { svg, l, r, t, b, x0, x1, y0, y1, lines, kind: svg.dataset.x, hover: cursor("hover"),
    now: { right: cursor("right"), left: cursor("left"), time: cursor("now") } };
});
function put(cursor, x) {
  cursor.style.display = x === null ? "none" : "";
  if (x !== null) cursor.setAttribute("transform", `translate(${x} 0)`);
}
function digits(v) { const a = Math.abs(v); return v.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3); }
for (const p of plots) {
  p.svg.addEventListener("pointermove", (event) => {
    const box = p.svg.getBoundingClientRect(), scale = p.svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    if (x < p.l || x > p.r) { put(p.hover, null); tip.style.display = "none"; return; }
    put(p.hover, x);
    const value = p.x0 + ((x - p.l) / (p.r - p.l)) * (p.x1 - p.x0);
    const rows = [digits(value) + " " + (p.kind === "cycle" ? "%" : p.kind === "time" ? "s" : "")];
    for (const line of p.lines) {
      let best = null, near = 9;
      for (const q of line.points) { const d = Math.abs(q[0] - x); if (d < near) { near = d; best = q; } }
      if (best) rows.push(line.name + "  " + digits(p.y0 + ((best[1] - p.b) / (p.t - p.b)) * (p.y1 - p.y0)));
    }
    tip.textContent = rows.join("\n");
    tip.style.display = "block";
    const wide = tip.offsetWidth;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - wide - 8) + "px";
    tip.style.top = event.clientY + 14 + "px";
  });
  p.svg.addEventListener("pointerleave", () => { put(p.hover, null); tip.style.display = "none"; });
  p.svg.addEventListener("click", (event) => {
    if (p.kind !== "time" || !window.showTime) return;
    const box = p.svg.getBoundingClientRect(), x = (event.clientX - box.left) * p.svg.viewBox.baseVal.width / box.width;
    if (x >= p.l && x <= p.r) window.showTime(p.x0 + ((x - p.l) / (p.r - p.l)) * (p.x1 - p.x0));
  });
}
function mark(time, cycles) {
  for (const p of plots) {
    if (p.kind === "time") {
      const inside = time >= p.x0 && time <= p.x1;
      put(p.now.time, inside ? p.l + ((time - p.x0) / (p.x1 - p.x0)) * (p.r - p.l) : null);
    } else if (p.kind === "cycle") {
      for (const side of ["right", "left"]) {
        const c = cycles.find((c) => c[0] === side && time >= c[1] && time < c[2]);
        put(p.now[side], c ? p.l + ((time - c[1]) / (c[2] - c[1])) * (p.r - p.l) : null);
      }
    }
  }
}
// ---- printing: every section
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
// ---- 3-D player
const source = document.getElementById("motion");
if (source) play(JSON.parse(source.textContent));
function play(data) {
  const canvas = document.querySelector("#stage canvas");
  const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
  const clock = document.querySelector("#stage .clock");
  if (!gl) {
    clock.textContent = "The 3-D view requires WebGL, which this browser does not support. The motion in words is below.";
    document.getElementById("motion-words").closest("details").open = true;
    return;
  }
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const shorts = (text) => new Int16Array(bytes(text));
  const frames = data.frames, bodies = data.bodies.length, markers = data.markers;
  const pose = shorts(data.pose), measured = shorts(data.measured), modeled = shorts(data.modeled), forces = shorts(data.forces);
  const unit = data.unit, origin = data.origin, feet = data.feet;
  // programs
  const compile = (vs, fs) => {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vs], [gl.FRAGMENT_SHADER, fs]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text); gl.compileShader(shader); gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "position"); gl.bindAttribLocation(program, 1, vs.includes("tint") ? "tint" : "normal");
    gl.linkProgram(program);
    return program;
  };
  const solid = compile(
    "attribute vec3 position, normal; uniform mat4 model, view; uniform vec3 stretch; varying vec3 n;" +
    "void main() { n = mat3(model) * (normal / stretch); gl_Position = view * model * vec4(position * stretch, 1.0); }",
    "precision mediump float; varying vec3 n; uniform vec4 color;" +
    "void main() { vec3 m = normalize(n); float up = 0.5 + 0.5 * m.z;" +
    "float sun = max(dot(m, normalize(vec3(0.45, -0.7, 0.75))), 0.0);" +
    "gl_FragColor = vec4(color.rgb * (0.38 + 0.27 * up + 0.45 * sun), color.a); }");
  const flat = compile(
    "attribute vec3 position; uniform mat4 view; void main() { gl_Position = view * vec4(position, 1.0); }",
    "precision mediump float; uniform vec4 color; void main() { gl_FragColor = color; }");
  const tinted = compile(
    "attribute vec3 position, tint; uniform mat4 view; varying vec3 c; void main() { c = tint; gl_Position = view * vec4(position, 1.0); }",
    "precision mediump float; varying vec3 c; void main() { gl_FragColor = vec4(c, 1.0); }");
  const where = (program, names) => Object.fromEntries(names.map((n) => [n, gl.getUniformLocation(program, n)]));
  const us = where(solid, ["model", "view", "color", "stretch"]), uf = where(flat, ["view", "color"]), ut = where(tinted, ["view"]);
  const buffer = (array) => { const b = gl.createBuffer(); gl.bindBuffer(gl.ARRAY_BUFFER, b); gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW); return b; };
  // meshes: vertices with normals, and triangles as indices
  const meshes = data.bodies.map((body) => {
    const v = shorts(body.vertices), n = new Int8Array(bytes(body.normals)), count = v.length / 3;
    const array = new Float32Array(6 * count);
    for (let i = 0; i < count; i++) for (let k = 0; k < 3; k++) {
      array[6 * i + k] = v[3 * i + k] * 1e-4; array[6 * i + 3 + k] = n[3 * i + k] / 127;
    }
    const indices = gl.createBuffer(), triangles = new Uint16Array(bytes(body.triangles));
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, indices); gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
    return { buffer: buffer(array), indices, count: triangles.length, color: body.color };
  });
  const lathe = (profile, around) => { // [radius, height, normal radius, normal height]
    const out = [];
    for (let i = 0; i + 1 < profile.length; i++) for (let j = 0; j < around; j++) {
      const corner = (p, k) => { const a = 2 * Math.PI * k / around, c = Math.cos(a), s = Math.sin(a);
        return [p[0] * c, p[0] * s, p[1], p[2] * c, p[2] * s, p[3]]; };
      const a = corner(profile[i], j), b = corner(profile[i], j + 1), c = corner(profile[i + 1], j + 1), d = corner(profile[i + 1], j);
      out.push(...a, ...b, ...c, ...a, ...c, ...d);
    }
    return { buffer: buffer(new Float32Array(out)), count: out.length / 6 };
  };
  const ring = [];
  for (let i = 0; i <= 6; i++) { const a = Math.PI * (i / 6 - 0.5); ring.push([Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a)]); }
  const ball = lathe(ring, 10);
  const arrow = lathe([[1, 0, 1, 0], [1, 0.86, 1, 0], [2.6, 0.86, 0.5, -0.5], [2.6, 0.86, 0.9, 0.3], [0, 1, 0.9, 0.3]], 12);
  // ground: a grid, and the plates
  const low = data.low, high = data.high, floor = [];
  for (let x = Math.floor(low[0]) - 1; x <= high[0] + 1; x += 0.5) floor.push(x, low[1] - 1, 0, x, high[1] + 1, 0);
  for (let y = Math.floor(low[1]) - 1; y <= high[1] + 1; y += 0.5) floor.push(low[0] - 1, y, 0, high[0] + 1, y, 0);
  const grid = { buffer: buffer(new Float32Array(floor)), count: floor.length / 3 };
  const faces = [], edges = [];
  for (const p of data.plates) {
    for (const i of [0, 1, 2, 0, 2, 3]) faces.push(p[i][0], p[i][1], p[i][2] + 0.001);
    for (let i = 0; i < 4; i++) for (const q of [p[i], p[(i + 1) % 4]]) edges.push(q[0], q[1], q[2] + 0.002);
  }
  const plateFaces = { buffer: buffer(new Float32Array(faces)), count: faces.length / 3 };
  const plateEdges = { buffer: buffer(new Float32Array(edges)), count: edges.length / 3 };
  const moving = gl.createBuffer();
  // muscles: nodes in the frames of their bodies, for every so many frames
  const muscles = data.muscles && { ...data.muscles, nodes: shorts(data.muscles.nodes), activation: new Uint8Array(bytes(data.muscles.activation)),
    total: data.muscles.counts.reduce((a, b) => a + b, 0) };
  // camera
  const cam = { azimuth: -1.12, elevation: 0.2, distance: data.far, offset: [0, 0, 0] };
  const multiply = (a, b) => { const c = new Float32Array(16);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) { let s = 0; for (let k = 0; k < 4; k++) s += a[4 * k + j] * b[4 * i + k]; c[4 * i + j] = s; }
    return c; };
  function view(target) {
    const ce = Math.cos(cam.elevation), back = [Math.cos(cam.azimuth) * ce, Math.sin(cam.azimuth) * ce, Math.sin(cam.elevation)];
    const side = [-Math.sin(cam.azimuth), Math.cos(cam.azimuth), 0];
    const up = [back[1] * side[2] - back[2] * side[1], back[2] * side[0] - back[0] * side[2], back[0] * side[1] - back[1] * side[0]];
    const eye = target.map((v, i) => v + back[i] * cam.distance);
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const look = new Float32Array([side[0], up[0], back[0], 0, side[1], up[1], back[1], 0, side[2], up[2], back[2], 0, -dot(side, eye), -dot(up, eye), -dot(back, eye), 1]);
    const near = 0.05, away = 60, f = 1 / Math.tan(0.31), w = canvas.width / canvas.height;
    const lens = new Float32Array([f / w, 0, 0, 0, 0, f, 0, 0, 0, 0, (away + near) / (near - away), -1, 0, 0, (2 * away * near) / (near - away), 0]);
    return { matrix: multiply(lens, look), side, up, eye };
  }
  const shown = {};
  for (const box of document.querySelectorAll(".controls input[type=checkbox]")) {
    shown[box.name] = box.checked;
    box.addEventListener("change", () => { shown[box.name] = box.checked; draw(); });
  }
  const point = (array, at) => [0, 1, 2].map((k) => (array[at + k] === -32768 ? NaN : origin[k] + array[at + k] * unit));
  const place = (p, size) => new Float32Array([size, 0, 0, 0, 0, size, 0, 0, 0, 0, size, 0, p[0], p[1], p[2], 1]);
  function bodyMatrix(frame, b) {
    const at = 7 * (frame * bodies + b), p = point(pose, at), s = 32767;
    let [w, x, y, z] = [pose[at + 3] / s, pose[at + 4] / s, pose[at + 5] / s, pose[at + 6] / s];
    const n = Math.hypot(w, x, y, z) || 1; w /= n; x /= n; y /= n; z /= n;
    return new Float32Array([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), 0, 2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), 0,
      2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), 0, p[0], p[1], p[2], 1]);
  }
  function along(p, d) { // rotation and length that align an arrow's z axis with d
    const n = Math.hypot(...d), z = d.map((v) => v / n), a = Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
    let x = [a[1] * z[2] - a[2] * z[1], a[2] * z[0] - a[0] * z[2], a[0] * z[1] - a[1] * z[0]];
    const m = Math.hypot(...x); x = x.map((v) => v / m);
    const y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]];
    return { matrix: new Float32Array([...x, 0, ...y, 0, ...z, 0, ...p, 1]), length: n };
  }
  function attributes(mesh, both) {
    gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, both ? 24 : 12, 0);
    if (both) { gl.enableVertexAttribArray(1); gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 24, 12); } else gl.disableVertexAttribArray(1);
  }
  function drawSolid(mesh, matrix, color, stretch) {
    gl.uniformMatrix4fv(us.model, false, matrix); gl.uniform4fv(us.color, color); gl.uniform3fv(us.stretch, stretch || [1, 1, 1]);
    if (!mesh.indices) gl.drawArrays(gl.TRIANGLES, 0, mesh.count);
    else { gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.indices); gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_SHORT, 0); }
  }
  function drawFlat(mesh, kind, color) { attributes(mesh, false); gl.uniform4fv(uf.color, color); gl.drawArrays(kind, 0, mesh.count); }
  function ribbons(f, eye) { // two triangles for each piece of a path, facing the camera
    const out = [], k = Math.min(Math.round(f / muscles.every), muscles.nodes.length / (4 * muscles.total) - 1), frames = new Map();
    let at = 4 * k * muscles.total;
    const world = () => {
      const n = muscles.nodes, b = n[at + 3], p = [n[at] * muscles.unit, n[at + 1] * muscles.unit, n[at + 2] * muscles.unit]; at += 4;
      if (b === -2) return null;
      if (b === -1) return p.map((v, i) => v + origin[i]);
      if (!frames.has(b)) frames.set(b, bodyMatrix(f, b));
      const m = frames.get(b);
      return [0, 1, 2].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]);
    };
    muscles.counts.forEach((count, i) => {
      const a = muscles.activation[k * muscles.counts.length + i], [rest, active, unknown] = muscles.colors;
      const color = a === 255 ? unknown : rest.map((v, j) => v + (active[j] - v) * a / muscles.steps);
      let last = world();
      for (let j = 1; j < count; j++) {
        const next = world();
        if (!last || !next) { last = next; continue; }
        const d = next.map((v, i) => v - last[i]), e = eye.eye.map((v, i) => v - last[i]);
        const s = [d[1] * e[2] - d[2] * e[1], d[2] * e[0] - d[0] * e[2], d[0] * e[1] - d[1] * e[0]], n = Math.hypot(...s);
        if (n > 1e-9) {
          const w = s.map((v) => 0.004 * v / n), put = (p, sign) => out.push(p[0] + sign * w[0], p[1] + sign * w[1], p[2] + sign * w[2], ...color);
          put(last, 1); put(last, -1); put(next, -1); put(last, 1); put(next, -1); put(next, 1);
        }
        last = next;
      }
    });
    return new Float32Array(out);
  }
  let frame = 0, playing = false, clockAt = 0, target = null;
  function draw() {
    const dpr = Math.min(devicePixelRatio || 1, 2), w = Math.round(canvas.clientWidth * dpr), h = Math.round(canvas.clientHeight * dpr);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const f = Math.max(0, Math.min(frames - 1, Math.round(frame)));
    const center = data.path[f];
    if (center[0] !== null) target = center;
    if (!target) target = [0, 0, 1];
    const eye = view(target.map((v, i) => v + cam.offset[i]));
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST); gl.enable(gl.BLEND); gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.useProgram(flat); gl.uniformMatrix4fv(uf.view, false, eye.matrix);
    drawFlat(grid, gl.LINES, [0.66, 0.71, 0.76, 0.75]);
    if (plateFaces.count) { drawFlat(plateFaces, gl.TRIANGLES, [0.72, 0.78, 0.84, 0.75]); drawFlat(plateEdges, gl.LINES, [0.35, 0.45, 0.55, 1]); }
    gl.useProgram(solid); gl.uniformMatrix4fv(us.view, false, eye.matrix);
    if (shown.modeled) { attributes(ball, true);
      for (let m = 0; m < markers; m++) { const p = point(modeled, 3 * (f * markers + m)); if (p[0] === p[0]) drawSolid(ball, place(p, 0.009), [0.15, 0.2, 0.26, 1]); } }
    if (shown.measured) { attributes(ball, true);
      for (let m = 0; m < markers; m++) { const p = point(measured, 3 * (f * markers + m)); if (p[0] === p[0]) drawSolid(ball, place(p, 0.011), [0.93, 0.42, 0.1, 1]); } }
    if (shown.muscles && muscles) { const strips = ribbons(f, eye);
      gl.useProgram(tinted); gl.uniformMatrix4fv(ut.view, false, eye.matrix);
      gl.bindBuffer(gl.ARRAY_BUFFER, moving); gl.bufferData(gl.ARRAY_BUFFER, strips, gl.DYNAMIC_DRAW);
      attributes({ buffer: moving }, true); gl.drawArrays(gl.TRIANGLES, 0, strips.length / 6);
      gl.useProgram(solid); }
    if (shown.bodies) { const clear = shown.muscles && muscles ? 0.4 : shown.modeled || shown.measured ? 0.9 : 1;
      gl.enable(gl.CULL_FACE); // back faces would show through
      for (let b = 0; b < bodies; b++) {
        const mesh = meshes[b]; if (!mesh.count || pose[7 * (f * bodies + b)] === -32768) continue;
        attributes(mesh, true); drawSolid(mesh, bodyMatrix(f, b), [...mesh.color, clear]);
      }
      gl.disable(gl.CULL_FACE); }
    if (shown.forces) { attributes(arrow, true);
      for (let k = 0; k < feet; k++) {
        const at = 6 * (f * feet + k), p = point(forces, at), d = [3, 4, 5].map((i) => forces[at + i] * data.forceUnit);
        if (p[0] !== p[0] || Math.hypot(...d) < 0.02) continue;
        const lay = along(p, d), stretch = [0.011, 0.011, lay.length];
        gl.disable(gl.DEPTH_TEST); drawSolid(arrow, lay.matrix, [0.1, 0.52, 0.32, 0.35], stretch); // visible through the leg
        gl.enable(gl.DEPTH_TEST); drawSolid(arrow, lay.matrix, [0.1, 0.52, 0.32, 1], stretch);
      } }
    if (shown.errors) { const lines = [];
      for (let m = 0; m < markers; m++) {
        const at = 3 * (f * markers + m), p = point(modeled, at), q = point(measured, at);
        if (p[0] === p[0] && q[0] === q[0]) lines.push(...p, ...p.map((v, i) => v + 10 * (q[i] - v)));
      }
      gl.useProgram(flat); gl.bindBuffer(gl.ARRAY_BUFFER, moving); gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(lines), gl.DYNAMIC_DRAW);
      gl.disable(gl.DEPTH_TEST); drawFlat({ buffer: moving, count: lines.length / 3 }, gl.LINES, [0.78, 0.1, 0.1, 1]); gl.enable(gl.DEPTH_TEST); }
    const time = data.start + f / data.rate;
    clock.textContent = time.toFixed(2) + " s";
    slider.value = f;
    mark(time, data.cycles);
  }
  const slider = document.querySelector(".controls input[type=range]"), button = document.querySelector(".controls button");
  const speed = document.querySelector(".controls select");
  slider.max = frames - 1;
  slider.addEventListener("input", () => { frame = Number(slider.value); draw(); });
  button.addEventListener("click", () => { playing = !playing; button.textContent = playing ? "Pause" : "Play"; clockAt = 0; if (playing) requestAnimationFrame(tick); });
  function tick(now) {
    if (!playing) return;
    if (clockAt) frame += ((now - clockAt) / 1000) * data.rate * Number(speed.value);
    if (frame > frames - 1) frame = 0;
    clockAt = now; draw(); requestAnimationFrame(tick);
  }
  window.showTime = (time) => { frame = (time - data.start) * data.rate; draw(); };
  canvas.addEventListener("pointerdown", (e) => canvas.setPointerCapture(e.pointerId));
  canvas.addEventListener("pointermove", (e) => {
    if (!e.buttons) return;
    if (e.shiftKey || e.buttons === 2) {
      const eye = view([0, 0, 0]), k = cam.distance * 0.0013;
      for (let i = 0; i < 3; i++) cam.offset[i] += (-e.movementX * eye.side[i] + e.movementY * eye.up[i]) * k;
    } else { cam.azimuth -= e.movementX * 0.008; cam.elevation = Math.max(-0.2, Math.min(1.5, cam.elevation + e.movementY * 0.006)); }
    draw();
  });
  canvas.addEventListener("contextmenu", (e) => e.preventDefault());
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); cam.distance = Math.max(0.6, Math.min(20, cam.distance * Math.exp(e.deltaY * 0.001))); draw(); }, { passive: false });
  addEventListener("keydown", (e) => {
    if (e.target.matches("input, select, button")) return;
    if (e.key === " ") { e.preventDefault(); button.click(); }
    if (e.key === "ArrowRight" || e.key === "ArrowLeft") { frame = Math.max(0, Math.min(frames - 1, Math.round(frame) + (e.key === "ArrowRight" ? 1 : -1))); draw(); }
  });
  addEventListener("resize", draw);
  frame = data.first;
  draw();
}
