"""Rasterization kernels: a depth buffer, shadow maps and shading.

Light is a sun (with a shadow map along its direction) and a sky (with a second map straight down, sampled widely, for
ambient occlusion). Depth is stored as its inverse, which is linear on the screen.
"""

from __future__ import annotations

from math import ceil, exp, floor, sqrt

from borelli.kernels.jit import kernel

FAR = 1e30


@kernel
def fill_depth(points, triangles, depth_out, triangle_out, weight_out):
    """Draw triangles, each point (column, row, inverse depth): keep the nearest triangle and its two weights."""
    height, width = depth_out.shape
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, az = points[a, 0], points[a, 1], points[a, 2]
        bx, by, bz = points[b, 0], points[b, 1], points[b, 2]
        cx, cy, cz = points[c, 0], points[c, 1], points[c, 2]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        # rows count downwards, so a triangle that faces the camera has negative area; those behind it are skipped
        if not area < 0.0 or az <= 0.0 or bz <= 0.0 or cz <= 0.0:
            continue
        left, right = max(0, ceil(min(ax, bx, cx))), min(width - 1, floor(max(ax, bx, cx)))
        top, bottom = max(0, ceil(min(ay, by, cy))), min(height - 1, floor(max(ay, by, cy)))
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                wb = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
                wc = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
                if wb < 0.0 or wc < 0.0 or wb + wc > 1.0:
                    continue
                depth = az + wb * (bz - az) + wc * (cz - az)
                if depth > depth_out[y, x]:
                    depth_out[y, x] = depth
                    triangle_out[y, x] = t
                    weight_out[y, x, 0] = wb
                    weight_out[y, x, 1] = wc


@kernel
def fill_height(points, triangles, height_out):
    """Draw triangles along -z without perspective: keep the largest z (a shadow map)."""
    rows, columns = height_out.shape
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if not area > 0.0:
            continue
        left, right = max(0, ceil(min(ax, bx, cx))), min(columns - 1, floor(max(ax, bx, cx)))
        top, bottom = max(0, ceil(min(ay, by, cy))), min(rows - 1, floor(max(ay, by, cy)))
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                wb = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
                wc = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
                if wb >= 0.0 and wc >= 0.0 and wb + wc <= 1.0:
                    z = points[a, 2] + wb * (points[b, 2] - points[a, 2]) + wc * (points[c, 2] - points[a, 2])
                    height_out[y, x] = max(height_out[y, x], z)


@kernel
def lit_cell(shadow_map, column, row, height):
    """Return 1 if nothing in this cell of the map is above `height`, else 0."""
    if column < 0 or row < 0 or row >= shadow_map.shape[0] or column >= shadow_map.shape[1]:
        return 1
    return 1 if shadow_map[row, column] <= height else 0


@kernel
def unoccluded_fraction(light, shadow_map, spread, x, y, z):
    """Return the fraction of a disc of light, `spread` map cells in radius, that reaches the point (x, y, z)."""
    u = light[0, 0] * x + light[0, 1] * y + light[0, 2] * z + light[0, 3]
    v = light[1, 0] * x + light[1, 1] * y + light[1, 2] * z + light[1, 3]
    w = light[2, 0] * x + light[2, 1] * y + light[2, 2] * z + light[2, 3]
    rows, columns = shadow_map.shape
    if u < -spread or v < -spread or u > columns + spread or v > rows + spread:
        return 1.0
    # where rim and center agree, the cells between nearly always do
    lit = 0
    for i in range(-1, 2):
        for j in range(-1, 2):
            lit += lit_cell(shadow_map, int(u + 0.5 + i * spread), int(v + 0.5 + j * spread), w)
    if lit == 0 or lit == 9:
        return lit / 9.0
    lit, total = 0, 0
    for i in range(-3, 4):
        for j in range(-3, 4):
            if i * i + j * j > 10:
                continue
            total += 1
            lit += lit_cell(shadow_map, int(u + 0.5 + i * spread / 3.0), int(v + 0.5 + j * spread / 3.0), w)
    return lit / total


@kernel
def nearest_plane(planes, sizes, eye, dx, dy, dz, near):
    """Return distance, index (-1: none before `near`) and tile (0 or 1) of the first plane that a ray hits.

    The rows of a plane are two directions, normal and origin; its sizes are tile and half side [m].
    """
    hit, tile = -1, 0
    for k in range(planes.shape[0]):
        slope = dx * planes[k, 2, 0] + dy * planes[k, 2, 1] + dz * planes[k, 2, 2]
        if slope >= 0.0:
            continue
        ox, oy, oz = planes[k, 3, 0] - eye[0], planes[k, 3, 1] - eye[1], planes[k, 3, 2] - eye[2]
        distance = (ox * planes[k, 2, 0] + oy * planes[k, 2, 1] + oz * planes[k, 2, 2]) / slope
        if not 0.0 < distance < near:
            continue
        rx, ry, rz = distance * dx - ox, distance * dy - oy, distance * dz - oz
        a = rx * planes[k, 0, 0] + ry * planes[k, 0, 1] + rz * planes[k, 0, 2]
        b = rx * planes[k, 1, 0] + ry * planes[k, 1, 1] + rz * planes[k, 1, 2]
        if max(abs(a), abs(b)) < sizes[k, 1]:
            near, hit = distance, k
            tile = (floor(a / sizes[k, 0]) + floor(b / sizes[k, 0])) & 1
    return near, hit, tile


@kernel
def smooth_normal(normals, a, b, c, wb, wc):
    """Return the interpolated unit normal in a triangle."""
    wa = 1.0 - wb - wc
    x = wa * normals[a, 0] + wb * normals[b, 0] + wc * normals[c, 0]
    y = wa * normals[a, 1] + wb * normals[b, 1] + wc * normals[c, 1]
    z = wa * normals[a, 2] + wb * normals[b, 2] + wc * normals[c, 2]
    size = 1.0 / max(sqrt(x * x + y * y + z * z), 1e-12)
    return x * size, y * size, z * size


@kernel
def gloss(sun, nx, ny, nz, dx, dy, dz):
    """Return the specular highlight by the half vector between sun and unit ray d (Blinn 1977)."""
    hx, hy, hz = sun[0] - dx, sun[1] - dy, sun[2] - dz
    along = (nx * hx + ny * hy + nz * hz) / sqrt(hx * hx + hy * hy + hz * hz)
    return 0.15 * max(along, 0.0) ** 40


@kernel
def shade(
    # geometry
    normals, triangles, colors, planes, plane_sizes, plane_colors,
    # depth buffer
    depth, triangle, weight,
    # camera: eye, and the screen's right, up and forward in the world, per unit of depth
    eye, right, up, forward,
    # light
    sun, sun_frame, sun_map, sun_spread, sky_frame, sky_map, sky_spread, bias, clearance, haze,
    # pixels out
    pixels_out,
):
    """Compute the color of every pixel in linear light."""
    height, width = depth.shape
    for row in range(height):
        for column in range(width):
            u, v = (column + 0.5) / width * 2.0 - 1.0, 1.0 - (row + 0.5) / height * 2.0
            dx = forward[0] + u * right[0] + v * up[0]
            dy = forward[1] + u * right[1] + v * up[1]
            dz = forward[2] + u * right[2] + v * up[2]
            length = sqrt(dx * dx + dy * dy + dz * dz)
            # the sky is pale at the horizon
            lift = 1.0 - exp(-5.0 * max(dz / length, 0.0))
            sky_r, sky_g, sky_b = 0.80 - 0.38 * lift, 0.85 - 0.28 * lift, 0.90 - 0.14 * lift
            near = 1.0 / depth[row, column] if depth[row, column] > 0.0 else FAR
            near, hit, tile = nearest_plane(planes, plane_sizes, eye, dx, dy, dz, near)
            r, g, b, mist = sky_r, sky_g, sky_b, 0.0
            if near < FAR:
                shine = 0.0
                if hit >= 0:
                    nx, ny, nz = planes[hit, 2, 0], planes[hit, 2, 1], planes[hit, 2, 2]
                    r, g, b = plane_colors[hit, tile, 0], plane_colors[hit, tile, 1], plane_colors[hit, tile, 2]
                    far = near * length * haze
                    mist = 1.0 - exp(-far * far)
                else:
                    t = triangle[row, column]
                    p, q, s = triangles[t, 0], triangles[t, 1], triangles[t, 2]
                    nx, ny, nz = smooth_normal(normals, p, q, s, weight[row, column, 0], weight[row, column, 1])
                    r, g, b = colors[p, 0], colors[p, 1], colors[p, 2]
                    shine = gloss(sun, nx, ny, nz, dx / length, dy / length, dz / length)
                x, y, z = eye[0] + near * dx, eye[1] + near * dy, eye[2] + near * dz
                facing = nx * sun[0] + ny * sun[1] + nz * sun[2]
                direct = 0.0
                if facing > 0.0:
                    e = bias * (2.0 - facing)
                    direct = unoccluded_fraction(sun_frame, sun_map, sun_spread, x + e * nx, y + e * ny, z + e * nz)
                # far enough from a wall that it does not shade itself
                sky = unoccluded_fraction(
                    sky_frame, sky_map, sky_spread, x + clearance * nx, y + clearance * ny, z + bias * nz)
                ambient = (0.30 + 0.22 * nz) * (0.40 + 0.60 * sky)
                sunlight = 0.72 * max(facing, 0.0) * direct
                shine *= direct
                # the sun is a little warm, the sky a little blue
                r = r * (sunlight * 1.05 + ambient * 0.95) + shine
                g = g * (sunlight + ambient) + shine
                b = b * (sunlight * 0.92 + ambient * 1.08) + shine
            pixels_out[row, column, 0] = r + mist * (sky_r - r)
            pixels_out[row, column, 1] = g + mist * (sky_g - g)
            pixels_out[row, column, 2] = b + mist * (sky_b - b)


@kernel
def develop(pixels, table, image_out):
    """Average the samples of each pixel and look up the average, linear light in 0 to 1, in `table`."""
    samples = pixels.shape[0] // image_out.shape[0]
    scale = (table.shape[0] - 1) / (samples * samples)
    for row in range(image_out.shape[0]):
        for column in range(image_out.shape[1]):
            for k in range(3):
                light = 0.0
                for i in range(samples):
                    for j in range(samples):
                        value = pixels[row * samples + i, column * samples + j, k]
                        light += min(value, 1.0) if value > 0.0 else 0.0  # NaN is no index of the table
                image_out[row, column, k] = table[int(light * scale)]
