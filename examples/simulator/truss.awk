# A ten-bar plane truss under two loads, by the direct stiffness method.
#
#     usage: awk -f truss.awk truss.in
#
# Input: lines "area <bar> <cm2>", "height <m>", "steel <grade>". Output: a report on standard output
# and displacements.csv, one line per free node. Exit status 2 if the input is incomplete, 3 if the
# stiffness matrix cannot be solved.

function fail(text, status) { print text > "/dev/stderr"; failed = status; exit status }

function bar(k, i, j) { from[k] = i; to[k] = j }

$1 == "area"   { area[$2] = $3 / 1e4 }
$1 == "height" { height = $2 + 0 }
$1 == "steel"  { grade = $2 }

END {
    if (failed) exit failed
    for (k = 1; k <= 10; k++) if (!(k in area)) fail("no area of bar " k, 2)
    if (height <= 0) fail("no height", 2)
    if (grade != "S235" && grade != "S355") fail("unknown steel " grade, 2)
    price = (grade == "S235") ? 1.0 : 1.25
    young = 210e9; density = 7850; load = 445e3; width = 9.144

    # Nodes 1 to 4 are free, 5 and 6 are held by the wall.
    split("2 2 1 1 0 0", column, " "); split("1 0 1 0 1 0", row, " ")
    for (n = 1; n <= 6; n++) { x[n] = column[n] * width; y[n] = row[n] * height }
    bar(1, 5, 3); bar(2, 3, 1); bar(3, 6, 4); bar(4, 4, 2); bar(5, 3, 4)
    bar(6, 1, 2); bar(7, 5, 4); bar(8, 6, 3); bar(9, 3, 2); bar(10, 4, 1)

    for (k = 1; k <= 10; k++) {
        dx = x[to[k]] - x[from[k]]; dy = y[to[k]] - y[from[k]]
        long[k] = sqrt(dx * dx + dy * dy); c[k] = dx / long[k]; s[k] = dy / long[k]
        mass += density * area[k] * long[k]
        stiff = young * area[k] / long[k]
        d[1] = -c[k]; d[2] = -s[k]; d[3] = c[k]; d[4] = s[k]
        at[1] = 2 * from[k] - 1; at[2] = 2 * from[k]; at[3] = 2 * to[k] - 1; at[4] = 2 * to[k]
        for (i = 1; i <= 4; i++) for (j = 1; j <= 4; j++) K[at[i], at[j]] += stiff * d[i] * d[j]
    }
    b[4] = -load; b[8] = -load

    # Gaussian elimination of the eight free displacements.
    for (p = 1; p <= 8; p++) {
        if (K[p, p] < 1) fail("singular stiffness", 3)
        for (i = p + 1; i <= 8; i++) {
            f = K[i, p] / K[p, p]; b[i] -= f * b[p]
            for (j = p; j <= 8; j++) K[i, j] -= f * K[p, j]
        }
    }
    for (p = 8; p >= 1; p--) {
        for (j = p + 1; j <= 8; j++) b[p] -= K[p, j] * u[j]
        u[p] = b[p] / K[p, p]
    }

    for (k = 1; k <= 10; k++) {
        stretch = c[k] * (u[2 * to[k] - 1] - u[2 * from[k] - 1]) + s[k] * (u[2 * to[k]] - u[2 * from[k]])
        stress = young * stretch / long[k] / 1e6
        if (stress < 0) stress = -stress
        if (stress > worst) worst = stress
    }
    print "node,x,y,sag" > "displacements.csv"
    for (n = 4; n >= 1; n--) printf "%d,%.9g,%.9g,%.9g\n", n, x[n], y[n], -1000 * u[2 * n] > "displacements.csv"
    for (n = 1; n <= 4; n++) if (-1000 * u[2 * n] > sag) sag = -1000 * u[2 * n]
    print "TEN-BAR TRUSS"
    printf "mass          = %.9g kg\n", mass
    printf "cost          = %.9g\n", mass * price
    printf "largest sag   = %.9g mm\n", sag
    printf "yield use     = %.9g\n", worst / ((grade == "S235") ? 235 : 355)
}
